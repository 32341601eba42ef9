"""Side files that relayout writes, as Orbax sees them; and Orbax's, to us."""

import json

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
import tensorstore as ts
from orbax.checkpoint import v1

from relayout.metadata import (
  array_metadatas,
  sharding,
  small_array,
  step_metadata,
  tree_metadata,
  zarr_array,
  zarr_scalar,
)
from relayout.metadata.item import open_item
from relayout.tree.key_path import KeyKind
from tests.support import golden, stores


def _restore(item):
  return ocp.Checkpointer(ocp.PyTreeCheckpointHandler()).restore(item)


def _flat(tree):
  flat, _ = jax.tree.flatten_with_path(tree)
  return {
    jax.tree_util.keystr(keys, simple=True, separator="."): value
    for keys, value in flat
  }


def _assert_holds(tree, arrays):
  flat = _flat(tree)
  assert flat.keys() == arrays.keys()
  for name, values in arrays.items():
    restored = flat[name]
    if jax.dtypes.issubdtype(restored.dtype, jax.dtypes.prng_key):
      restored = jax.random.key_data(restored)
    assert np.asarray(restored).tobytes() == values.tobytes()


@pytest.mark.parametrize(
  ("name", "item"),
  [
    ("sft_scan", "model_params"),
    ("pretrain_scan", "items"),
    # Saved on four devices, restored on one: only the made-up sharding can.
    ("sft_unscan_sharded", "model_params"),
  ],
)
def test_made_up_shardings_restore_without_a_target(tmp_path, name, item):
  step = golden.copy_checkpoints(name, tmp_path) / "4"
  directory = step / item
  names = sharding.read_shardings(directory)
  (directory / "_sharding").write_bytes(
    sharding.shardings_bytes(
      dict.fromkeys(names, sharding.single_device_sharding())
    )
  )
  arrays = stores.read_item(directory)
  _assert_holds(_restore(directory), arrays)
  _assert_holds(v1.load_checkpointables(step, {item: None})[item], arrays)


def test_rewritten_side_files_restore_as_before(tmp_path):
  step = golden.copy_checkpoints("pretrain_scan", tmp_path) / "4"
  directory = step / "items"
  before = _restore(directory)
  _rewrite(directory / "_METADATA", _rewritten_tree)
  _rewrite(directory / "array_metadatas" / "process_0", _rewritten_arrays)
  _rewrite(directory / "_sharding", _rewritten_shardings)
  _rewrite(step / "_CHECKPOINT_METADATA", _rewritten_step)
  after = _restore(directory)
  assert jax.tree.structure(before) == jax.tree.structure(after)
  _assert_holds(after, stores.read_item(directory))
  assert v1.checkpointables_metadata(step).custom_metadata == {
    "scan_layers": True
  }


@pytest.mark.parametrize(
  ("name", "item", "step"),
  [
    ("pretrain_scan", "items", "step"),
    ("sft_scan", "optimizer_state", "step.value"),
  ],
)
def test_new_scalars_restore(tmp_path, name, item, step):
  directory = golden.copy_checkpoints(name, tmp_path) / "4" / item
  old = {leaf.name: leaf for leaf in open_item(directory).leaves}[step].spec
  new = zarr_scalar.scalar_array(old.dtype, old.zarr_format)
  kvstore = ts.KvStore.open(stores.kvstore(directory)).result()
  kvstore[f"{step}/{new.metadata_key}"] = zarr_array.array_metadata_bytes(new)
  chunk_key = small_array.chunk_key(new, ())
  kvstore[f"{step}/{chunk_key}"] = zarr_scalar.encode_scalar(77, new.dtype)
  assert _flat(_restore(directory))[step] == 77
  opened = open_item(directory)
  leaf = {leaf.name: leaf for leaf in opened.leaves}[step]
  assert opened.read_small(leaf) == [77]


def _rewrite(path, change):
  data = path.read_bytes()
  path.unlink()
  path.write_bytes(change(data))


def _rewritten_tree(data):
  return tree_metadata.tree_metadata_bytes(
    tree_metadata.parse_tree_metadata(data, "f")
  )


def _rewritten_arrays(data):
  return array_metadatas.array_metadatas_bytes(
    array_metadatas.parse_array_metadatas(data, "f")
  )


def _rewritten_shardings(data):
  shardings = sharding.parse_shardings(data, "f")
  unstacked = {
    name: sharding.stacked_sharding(sharding.unstacked_sharding(text, 1), 1, 8)
    for name, text in shardings.items()
  }
  return sharding.shardings_bytes(unstacked)


def _rewritten_step(data):
  return step_metadata.step_metadata_bytes(
    step_metadata.parse_step_metadata(data, "f")
  )


_STATE = {
  "kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
  "empty": {},
  "none": None,
  "list": [np.arange(3, dtype=np.int32), (), np.array(2, np.uint32)],
  "python": 3,
  "text": "hello",
}


@pytest.mark.parametrize("use_ocdbt", [True, False])
@pytest.mark.parametrize("use_zarr3", [True, False])
def test_what_orbax_writes_is_opened(tmp_path, use_ocdbt, use_zarr3):
  handler = ocp.PyTreeCheckpointHandler(
    use_ocdbt=use_ocdbt, use_zarr3=use_zarr3
  )
  state = _STATE | {
    "key": jax.random.key(7),
    "device": jax.numpy.ones((2,), jax.numpy.bfloat16),
  }
  ocp.Checkpointer(handler).save(tmp_path / "item", state)
  item = open_item(tmp_path / "item")
  assert item.store == ("ocdbt" if use_ocdbt else "zarr")
  assert item.use_zarr3 == use_zarr3
  leaves = {leaf.name: leaf for leaf in item.leaves}
  values = {
    name: item.read_small(leaf)
    for name, leaf in leaves.items()
    if leaf.spec is not None
  }
  assert values == {
    "kernel": [0, 1, 2, 3, 4, 5],
    "list.0": [0, 1, 2],
    "list.2": [2],
    "python": [3],
    "key": jax.random.key_data(jax.random.key(7)).tolist(),
    "device": [1, 1],
  }
  assert {name: leaf.value_type for name, leaf in leaves.items()} == {
    "kernel": "np.ndarray",
    "empty": "Dict",
    "none": "None",
    "list.0": "np.ndarray",
    "list.1": "Tuple",
    "list.2": "np.ndarray",
    "python": "scalar",
    "text": "string",
    "key": "jax.Array",
    "device": "jax.Array",
  }
  assert leaves["list.0"].path.kinds == (KeyKind.DICT, KeyKind.SEQUENCE)
  assert leaves["key"].random_key_impl == "threefry2x32"
  assert json.loads(leaves["device"].sharding)["sharding_type"]
