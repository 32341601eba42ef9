import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorstore as ts

from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  NotACheckpointError,
)
from relayout.metadata.item import open_item
from relayout.tree.key_path import KeyKind, TypedPath
from tests.support import golden, stores


def _golden_item(name, item, target):
  return golden.copy_checkpoints(name, target) / "4" / item


def _leaves(item):
  return {leaf.name: leaf for leaf in item.leaves}


def _edit_json(path, change):
  value = json.loads(path.read_text())
  change(value)
  path.write_text(json.dumps(value))


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_golden_items_agree_with_tensorstore(name):
  for path in golden.checkpoints(name).rglob("_METADATA"):
    item = open_item(path.parent)
    assert item.store == "ocdbt"
    assert item.name == path.parent.name
    assert item.notes == ()
    assert item.missing_side_files == ()
    drivers = stores.array_names(path.parent)
    arrays = [leaf for leaf in item.leaves if leaf.spec is not None]
    assert {leaf.name for leaf in arrays} == drivers.keys()
    assert set(drivers.values()) == {"zarr3" if item.use_zarr3 else "zarr"}
    for leaf in arrays:
      assert leaf.sharding is not None
      assert leaf.write_shape is not None
      assert leaf.num_chunks == np.prod(leaf.spec.grid, dtype=int)
      assert (leaf.listing, leaf.other_listings) == (0, ())


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_small_golden_arrays_are_those_of_tensorstore(name):
  for path in golden.checkpoints(name).rglob("_METADATA"):
    item = open_item(path.parent)
    arrays = stores.read_item(path.parent)
    for leaf in item.leaves:
      if leaf.spec is not None and leaf.spec.num_elements <= 64:
        values = arrays[leaf.name].astype(np.float64).ravel().tolist()
        assert item.read_small(leaf) == values


def test_golden_leaves():
  item = open_item(golden.checkpoints("pretrain_scan") / "4" / "items")
  leaves = _leaves(item)
  assert item.read_small(leaves["step"]) == [5]
  count = leaves["opt_state.2.count"]
  assert count.path.kinds[1] is KeyKind.SEQUENCE
  none = leaves["opt_state.1"]
  assert (none.spec, none.value_type) == (None, "None")
  keys = [leaf for leaf in item.leaves if leaf.random_key_impl]
  assert {leaf.random_key_impl for leaf in keys} == {"unsafe_rbg"}
  with pytest.raises(LayoutError, match=r"opt_state\.1 is None, not an array"):
    item.read_small(none)


@pytest.mark.parametrize("side_file", ["_sharding", "array_metadatas"])
def test_side_files_may_be_absent(tmp_path, side_file):
  directory = _golden_item("sft_scan", "model_params", tmp_path)
  expected = open_item(directory)
  path = directory / side_file
  shutil.rmtree(path) if path.is_dir() else path.unlink()
  item = open_item(directory)
  assert item.missing_side_files == (side_file,)
  assert any(side_file in note for note in item.notes)
  assert [leaf.path for leaf in item.leaves] == [
    leaf.path for leaf in expected.leaves
  ]


@pytest.mark.parametrize("content", [None, "{}"])
def test_the_tree_may_be_absent(tmp_path, content):
  directory = _golden_item("pretrain_scan", "items", tmp_path)
  expected = _leaves(open_item(directory))
  (directory / "_METADATA").unlink()
  if content is not None:
    (directory / "_METADATA").write_text(content)
  item = open_item(directory)
  assert item.use_zarr3
  assert any("every container is taken for a dict" in n for n in item.notes)
  found = _leaves(item)
  del expected["opt_state.1"]
  assert found.keys() == expected.keys()
  count = found["opt_state.2.count"]
  assert count.path == TypedPath.of_dicts(("opt_state", "2", "count"))
  for name, leaf in found.items():
    assert leaf.spec == expected[name].spec
    assert leaf.random_key_impl == expected[name].random_key_impl
    assert leaf.write_shape == expected[name].write_shape


def test_all_side_files_may_be_absent(tmp_path):
  stores.write_item(tmp_path, {"a.b": np.arange(3)})
  item = open_item(tmp_path)
  assert item.missing_side_files == (
    "_METADATA",
    "_sharding",
    "array_metadatas",
  )
  (leaf,) = item.leaves
  assert leaf.path == TypedPath.of_dicts(("a", "b"))
  assert item.read_small(leaf) == [0, 1, 2]


def test_an_array_that_is_not_in_the_store_is_named(tmp_path):
  directory = _golden_item("sft_scan", "model_params", tmp_path)

  def add(value):
    tree = value["tree_metadata"]
    entry = json.loads(json.dumps(next(iter(tree.values()))))
    entry["key_metadata"] = [{"key": "lost", "key_type": 2}]
    tree["('lost',)"] = entry

  _edit_json(directory / "_METADATA", add)
  with pytest.raises(
    CorruptCheckpointError, match=r"1 arrays .*: lost"
  ) as error:
    open_item(directory)
  assert str(directory) in str(error.value)


def test_an_array_in_another_form_of_storage_is_named(tmp_path):
  directory = _golden_item("sft_scan", "model_params", tmp_path)
  name = "token_embedder.embedding.value"
  kvstore = ts.KvStore.open(stores.kvstore(directory)).result()
  kvstore.delete_range(ts.KvStore.KeyRange(f"{name}/", f"{name}0")).result()
  _write_zarr(directory, "zarr", name, np.zeros(2), [2])
  with pytest.raises(CorruptCheckpointError, match="mixes forms") as caught:
    open_item(directory)
  assert str(directory / name / ".zarray") in str(caught.value)


def test_an_array_that_the_tree_does_not_name_is_noted(tmp_path):
  directory = _golden_item("sft_scan", "model_params", tmp_path)
  removed = []
  _edit_json(
    directory / "_METADATA",
    lambda value: removed.append(value["tree_metadata"].popitem()[0]),
  )
  item = open_item(directory)
  assert len(item.leaves) == 24
  (note,) = item.notes
  assert "doesn't name" in note
  assert "token_embedder.embedding.value" in note


def test_placeholders_that_were_filled_are_left_out(tmp_path):
  stores.write_item(tmp_path, {"a.b": np.arange(3)})

  def entry(value_type, skip, *names):
    return {
      "key_metadata": [{"key": name, "key_type": 2} for name in names],
      "value_metadata": {"value_type": value_type, "skip_deserialize": skip},
    }

  tree = {
    "('a',)": entry("Dict", True, "a"),
    "('a', 'b')": entry("np.ndarray", False, "a", "b"),
    "('c',)": entry("Dict", True, "c"),
    "('d',)": entry("string", False, "d"),
  }
  (tmp_path / "_METADATA").write_text(json.dumps({"tree_metadata": tree}))
  item = open_item(tmp_path)
  assert [leaf.name for leaf in item.leaves] == ["a.b", "c", "d"]
  assert [leaf.spec is None for leaf in item.leaves] == [False, True, True]
  assert any("empty containers" in note for note in item.notes)
  assert any("text: d" in note for note in item.notes)


def test_a_lost_chunk_is_refused(tmp_path):
  directory = _golden_item("sft_unscan_sharded", "model_params", tmp_path)
  leaf = next(
    leaf for leaf in open_item(directory).leaves if leaf.num_chunks > 1
  )
  kvstore = ts.KvStore.open(stores.kvstore(directory)).result()
  chunks = kvstore.list(
    ts.KvStore.KeyRange(f"{leaf.name}/0", f"{leaf.name}/9")
  ).result()
  kvstore.delete_range(ts.KvStore.KeyRange(chunks[0], chunks[1])).result()
  with pytest.raises(
    CorruptCheckpointError, match="3 of its 4 chunks"
  ) as error:
    open_item(directory)
  assert leaf.name in str(error.value)

  _edit_json(
    directory / "_METADATA",
    lambda value: value.update(store_array_data_equal_to_fill_value=False),
  )
  assert _leaves(open_item(directory))[leaf.name].num_chunks == 3


def test_empty_arrays_have_no_chunks(tmp_path):
  stores.write_item(tmp_path, {"a": np.zeros((0, 4)), "b": np.zeros((4, 0))})
  for leaf in open_item(tmp_path).leaves:
    assert leaf.num_chunks == 0
    assert leaf.spec.num_bytes == 0


@pytest.mark.parametrize(
  "name", ["sft_unscan_sharded", "pretrain_scan_sharded"]
)
def test_hosts_databases_stand_in_for_the_merged_one(tmp_path, name):
  copy = golden.copy_checkpoints(name, tmp_path) / "4"
  for manifest in list(copy.glob("*/manifest.ocdbt")):
    expected = open_item(manifest.parent)
    manifest.unlink()
    item = open_item(manifest.parent)
    assert item.leaves == expected.leaves
    assert item.listings[0].directory.endswith("ocdbt.process_0")
    (note,) = item.notes
    assert "no merged manifest.ocdbt" in note


def _write_part(directory, process, shape, part, dtype="<f4"):
  """Writes one host's part of an array of `shape` in chunks of 2."""
  database = directory / f"ocdbt.process_{process}"
  store = ts.open(
    {
      "driver": "zarr",
      "kvstore": stores.kvstore(database, "a/"),
      "metadata": {
        "chunks": [2],
        "compressor": None,
        "dtype": dtype,
        "shape": shape,
      },
      "store_data_equal_to_fill_value": True,
    },
    create=True,
  ).result()
  values = np.arange(*part.indices(shape[0]), dtype=dtype)
  store[part].write(values).result()


def test_an_array_may_lie_in_several_databases(tmp_path):
  for process, part in ((0, slice(0, 2)), (1, slice(2, 4)), (10, slice(4, 6))):
    _write_part(tmp_path, process, [6], part)
  item = open_item(tmp_path)
  (leaf,) = item.leaves
  assert (leaf.listing, leaf.other_listings) == (0, (1, 2))
  assert leaf.num_chunks == 3
  assert item.read_small(leaf) == [0, 1, 2, 3, 4, 5]


def test_databases_of_different_saves_are_refused(tmp_path):
  _write_part(tmp_path, 0, [6], slice(0, 2))
  _write_part(tmp_path, 1, [6], slice(2, 4), dtype="<f8")
  with pytest.raises(CorruptCheckpointError, match=r"'a' .* different saves"):
    open_item(tmp_path)


def _write_zarr(directory, driver, name, values, chunk, **metadata):
  if driver == "zarr":
    metadata |= {"chunks": chunk}
  else:
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    metadata |= {"chunk_grid": grid}
  store = ts.open(
    {
      "driver": driver,
      "kvstore": {"driver": "file", "path": f"{directory / name}/"},
      "metadata": metadata,
    },
    create=True,
    dtype=ts.dtype(values.dtype),
    shape=values.shape,
  ).result()
  store.write(values).result()


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_directories_of_zarr(tmp_path, driver):
  compressor = {"compressor": {"id": "zstd"}} if driver == "zarr" else {}
  values = np.arange(1, 7, dtype=np.int32)
  _write_zarr(tmp_path, driver, "a.b", values, [4], **compressor)
  _write_zarr(tmp_path, driver, "nested/c", values[:1], [1], **compressor)
  item = open_item(tmp_path)
  assert item.store == "zarr"
  assert [listing.num_keys for listing in item.listings] == [5]
  assert item.use_zarr3 == (driver == "zarr3")
  leaves = _leaves(item)
  assert leaves["a.b"].path.names == ("a", "b")
  assert leaves["a.b"].listing == 0
  assert leaves["a.b"].num_chunks == 2
  assert leaves["a.b"].num_stored_bytes == sum(
    path.stat().st_size
    for path in (tmp_path / "a.b").rglob("*")
    if path.is_file() and path.name not in (".zarray", "zarr.json")
  )
  assert item.read_small(leaves["a.b"]) == [1, 2, 3, 4, 5, 6]
  assert item.read_small(leaves["nested/c"]) == [1]


@pytest.mark.parametrize("name", ["loop", "a/loop"])
def test_links_in_a_circle_are_refused(tmp_path, name):
  _write_zarr(tmp_path, "zarr", "a", np.arange(3), [3], compressor=None)
  (tmp_path / name).symlink_to(tmp_path)
  with pytest.raises(CorruptCheckpointError, match=name):
    open_item(tmp_path)


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
  (tmp_path / "a").mkdir()
  _write_zarr(tmp_path, "zarr", "b", np.arange(3), [3], compressor=None)
  os.rename(tmp_path / "b", os.fsencode(tmp_path) + b"/b\xff")
  with pytest.raises(CorruptCheckpointError, match="UTF-8"):
    open_item(tmp_path)


def test_a_huge_small_chunk_is_refused(tmp_path):
  _write_zarr(tmp_path, "zarr", "a", np.arange(3), [3], compressor=None)
  os.truncate(tmp_path / "a" / "0", 1 << 40)
  item = open_item(tmp_path)
  with pytest.raises(CorruptCheckpointError, match="a/0"):
    item.read_small(item.leaves[0])


def test_a_database_an_array_is_noted(tmp_path):
  _write_zarr(tmp_path, "zarr", "a", np.arange(3), [3], compressor=None)
  stores.write_item(tmp_path / "old", {"b": np.arange(3)})
  (note,) = [note for note in open_item(tmp_path).notes if "OCDBT" in note]
  assert "old" in note


def test_both_versions_of_zarr_are_noted(tmp_path):
  stores.write_item(tmp_path, {"a": np.arange(3)})
  stores.write_item(tmp_path, {"b": np.arange(3)}, zarr_format=3)
  item = open_item(tmp_path)
  assert any("zarr v2 and of v3" in note for note in item.notes)
  assert not item.use_zarr3


def test_a_wrong_flag_is_noted(tmp_path):
  directory = _golden_item("sft_scan", "model_params", tmp_path)
  _edit_json(
    directory / "_METADATA", lambda value: value.update(use_zarr3=True)
  )
  item = open_item(directory)
  assert not item.use_zarr3
  (note,) = item.notes
  assert "says use_zarr3 true, but the arrays are zarr v2" in note


def test_keys_of_no_array_are_noted(tmp_path):
  stores.write_item(tmp_path, {"a": np.arange(3)})
  kvstore = ts.KvStore.open(stores.kvstore(tmp_path)).result()
  kvstore["stray"] = b"x"
  assert any("stray" in note for note in open_item(tmp_path).notes)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff" * 10])
@pytest.mark.parametrize(
  "side_file", ["_METADATA", "_sharding", "array_metadatas/process_0"]
)
def test_damaged_side_files_are_named(tmp_path, side_file, damage):
  directory = _golden_item("sft_scan", "model_params", tmp_path)
  (directory / side_file).write_bytes(damage)
  with pytest.raises(CorruptCheckpointError) as caught:
    open_item(directory)
  assert str(directory / side_file) in str(caught.value)


def test_a_damaged_manifest_is_named(tmp_path):
  directory = _golden_item("sft_scan", "model_params", tmp_path)
  manifest = directory / "manifest.ocdbt"
  manifest.write_bytes(manifest.read_bytes()[:-10])
  with pytest.raises(CorruptCheckpointError) as caught:
    open_item(directory)
  assert str(directory) in str(caught.value)


def test_damaged_array_metadata_is_named(tmp_path):
  stores.write_item(tmp_path, {"layer.kernel": np.arange(3)})
  kvstore = ts.KvStore.open(stores.kvstore(tmp_path)).result()
  kvstore["layer.kernel/.zarray"] = b'{"zarr_format": 2}'
  with pytest.raises(CorruptCheckpointError, match=r"layer\.kernel/\.zarray"):
    open_item(tmp_path)


def test_no_item(tmp_path):
  with pytest.raises(NotACheckpointError, match="holds no arrays"):
    open_item(tmp_path)
  with pytest.raises(NotACheckpointError, match="can't be read"):
    open_item(tmp_path / "absent")
  (tmp_path / "file").write_text("")
  with pytest.raises(NotACheckpointError, match="can't be read"):
    open_item(tmp_path / "file")


def test_opening_imports_nothing_heavy():
  directory = golden.checkpoints("sft_scan") / "4" / "model_params"
  script = (
    "import sys, pathlib\n"
    f"sys.path[:] = {sys.path!r}\n"
    "from relayout.metadata import checkpoint, item\n"
    f"item.open_item(pathlib.Path({str(directory)!r}))\n"
    "heavy = {'jax', 'numpy', 'orbax', 'tensorstore'} & sys.modules.keys()\n"
    "assert not heavy, heavy\n"
  )
  subprocess.run([sys.executable, "-c", script], check=True)
