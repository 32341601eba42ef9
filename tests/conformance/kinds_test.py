"""Every kind of input that Orbax writes, or other programs of its formats.

Each is written by TensorStore, NumPy or Orbax, converted to the other scan
mode, and compared with what was written byte for byte.
"""

import dataclasses
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numcodecs
import numpy as np
import orbax.checkpoint as ocp
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.conformance import readers
from tests.support import golden, stores

_LAYERS = 4
_SHAPE = (6, 10)
_STACK = {"scan_layers": "true", "layer_pattern": "flat"}
_UNSTACK = {"scan_layers": "false", "layer_pattern": "flat"}
_PREFIX = "params.params.decoder"
_ZSTD = {"name": "zstd", "configuration": {"level": 1}}
_GZIP = {"name": "gzip", "configuration": {"level": 1}}
_BLOSC = {
  "name": "blosc",
  "configuration": {
    "cname": "lz4",
    "clevel": 5,
    "shuffle": "shuffle",
    "typesize": 4,
    "blocksize": 0,
  },
}
_TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
_F3 = {"name": "transpose", "configuration": {"order": [2, 1, 0]}}


def _little(endian="little"):
  return {"name": "bytes", "configuration": {"endian": endian}}


def _sharding(inner, *codecs):
  return {
    "name": "sharding_indexed",
    "configuration": {
      "chunk_shape": list(inner),
      "codecs": [_little(), *codecs],
      "index_codecs": [_little(), {"name": "crc32c"}],
    },
  }


@dataclasses.dataclass(frozen=True)
class Kind:
  """How arrays are stored.

  Attributes:
    metadata: Changes to the metadata that TensorStore is given.
    zarr_format: 2 or 3.
    stacked: Changes for arrays of a scanned model, which have one axis more.
    dtype: As TensorStore names it.
    chunk: Chunk lengths of a layer; None: whole.
    is_ocdbt: Whether in a database, or a directory an array.
  """

  metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
  zarr_format: int = 2
  stacked: dict[str, Any] | None = None
  dtype: str = "float32"
  chunk: tuple[int, int] | None = None
  is_ocdbt: bool = True


_V2 = {"compressor": {"id": "zstd", "level": 1}}
_BLOSC_V2 = {
  "id": "blosc",
  "cname": "lz4",
  "clevel": 5,
  "shuffle": 1,
  "blocksize": 0,
}
_KINDS = {
  "v2": Kind(_V2),
  "v2 directories": Kind(_V2, is_ocdbt=False),
  "v2 slashes": Kind({**_V2, "dimension_separator": "/"}),
  "v2 slashes in directories": Kind(
    {**_V2, "dimension_separator": "/"}, is_ocdbt=False
  ),
  "v2 ragged": Kind(_V2, chunk=(4, 3)),
  "v2 uncompressed": Kind({"compressor": None}),
  "v2 gzip": Kind({"compressor": {"id": "zlib", "level": 1}}),
  "v2 blosc": Kind({"compressor": _BLOSC_V2}, chunk=(4, 3)),
  "v2 big endian": Kind({**_V2, "dtype": ">f4"}),
  "v2 F order": Kind({**_V2, "order": "F"}),
  "v2 big endian in F order, blosc": Kind(
    {"compressor": _BLOSC_V2, "dtype": ">f4", "order": "F"}, chunk=(4, 3)
  ),
  "v3": Kind({"codecs": [_little(), _ZSTD]}, 3),
  "v3 directories": Kind({"codecs": [_little(), _ZSTD]}, 3, is_ocdbt=False),
  "v3 uncompressed": Kind({"codecs": [_little()]}, 3, chunk=(4, 3)),
  "v3 gzip": Kind({"codecs": [_little(), _GZIP]}, 3),
  "v3 blosc": Kind({"codecs": [_little(), _BLOSC]}, 3),
  "v3 crc32c": Kind({"codecs": [_little(), _ZSTD, {"name": "crc32c"}]}, 3),
  "v3 big endian": Kind({"codecs": [_little("big"), _ZSTD]}, 3),
  "v3 transposed": Kind(
    {"codecs": [_TRANSPOSE, _little(), _ZSTD]},
    3,
    stacked={"codecs": [_F3, _little(), _ZSTD]},
  ),
  "v3 shards": Kind(
    {"codecs": [_sharding((3, 5), _ZSTD)]},
    3,
    stacked={"codecs": [_sharding((3, 1, 5), _ZSTD)]},
  ),
  "v3 shards of inner chunks that span layers": Kind(
    {"codecs": [_sharding((3, 5), _ZSTD)]},
    3,
    stacked={"codecs": [_sharding((3, 2, 5), _ZSTD)]},
  ),
  "v3 uncompressed shards": Kind(
    {"codecs": [_sharding((3, 5))]},
    3,
    stacked={"codecs": [_sharding((3, 1, 5))]},
    is_ocdbt=False,
  ),
  **{
    f"v2 {dtype}": Kind({**_V2}, dtype=dtype)
    for dtype in (
      "bfloat16",
      "float8_e4m3fn",
      "float8_e5m2",
      "float16",
      "float64",
    )
  },
  **{
    f"v3 {dtype}": Kind({"codecs": [_little(), _ZSTD]}, 3, dtype=dtype)
    for dtype in ("bfloat16", "uint32", "int32")
  },
  **{
    f"v3 {dtype}": Kind({"codecs": [{"name": "bytes"}, _ZSTD]}, 3, dtype=dtype)
    for dtype in ("float8_e4m3fn", "float8_e5m2", "int8", "int4")
  },
  "v2 int4": Kind({**_V2}, dtype="int4"),
  "v2 uint32": Kind({**_V2}, dtype="uint32"),
}
_IN_SHARDS = {"v3 shards", "v3 uncompressed shards"}
"""Kinds whose layers are ranges of bytes, and need no rewriting."""


def _write(directory: Path, name: str, values: np.ndarray, kind, *, stacked):
  chunk = list(values.shape)
  if kind.chunk is not None:
    chunk = [*kind.chunk]
    if stacked:
      chunk.insert(1, _LAYERS)
  metadata = kind.metadata
  if stacked and kind.stacked is not None:
    metadata = kind.stacked
  if kind.zarr_format == 2:
    metadata = {"chunks": chunk, **metadata}
  else:
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    metadata = {"chunk_grid": grid, **metadata}
  kvstore: dict[str, Any] = {"driver": "file", "path": f"{directory}/{name}/"}
  if kind.is_ocdbt:
    kvstore = stores.kvstore(directory, f"{name}/")
  spec = {
    "driver": "zarr" if kind.zarr_format == 2 else "zarr3",
    "kvstore": kvstore,
    "metadata": metadata,
  }
  if "dtype" not in metadata:
    spec["dtype"] = kind.dtype
  store = ts.open(spec, create=True, shape=values.shape).result()
  store.write(values).result()


def _layers(dtype: str) -> list[np.ndarray]:
  """Returns values that differ in every element that the type tells apart."""
  rng = np.random.default_rng(7)
  element = ts.dtype(dtype).numpy_dtype
  values = rng.integers(0, 100, (_LAYERS, *_SHAPE))
  if dtype == "int4":
    values = values % 16 - 8
  elif dtype.startswith("float8"):
    values = values % 16
  return [*values.astype(element)]


def _convert(source: Path, target: Path, options) -> dict[str, Any]:
  [step] = convert(source, target, Options(**options)).to_json()["steps"]
  return step


def _same(left, right) -> bool:
  return (
    left.dtype == right.dtype
    and left.shape == right.shape
    and left.tobytes() == right.tobytes()
  )


@pytest.mark.parametrize("name", _KINDS)
def test_unscanned_becomes_scanned(name, tmp_path):
  kind, item = _KINDS[name], tmp_path / "in/3/items"
  layers = _layers(kind.dtype)
  for i, values in enumerate(layers):
    array = f"{_PREFIX}.layers_{i}.w"
    _write(item, array, values, kind, stacked=False)
  step = _convert(tmp_path / "in", tmp_path / "out", _STACK)
  [found] = stores.read_item(Path(step["target"], "items")).values()
  assert _same(found, np.stack(layers, 1))


@pytest.mark.parametrize("name", _KINDS)
def test_scanned_becomes_unscanned(name, tmp_path):
  kind, item = _KINDS[name], tmp_path / "in/3/items"
  layers = _layers(kind.dtype)
  _write(item, f"{_PREFIX}.layers.w", np.stack(layers, 1), kind, stacked=True)
  step = _convert(tmp_path / "in", tmp_path / "out", _UNSTACK)
  found = stores.read_item(Path(step["target"], "items"))
  for i, values in enumerate(layers):
    assert _same(found.pop(f"{_PREFIX}.layers_{i}.w"), values), i
  assert not found
  is_rewritten = step["applied"]["num_bytes_rewritten"] > 0
  assert is_rewritten is (name not in _IN_SHARDS)
  ways = {leaf["way"] for leaf in step["leaves"]}
  if name in _IN_SHARDS:
    assert ways == {"re-keyed inside a shard"}
  else:
    assert ways == {"rewritten"}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 4), (4, 0, 3)], ids=str)
def test_arrays_without_elements_stack_and_unstack(
  shape, zarr_format, tmp_path
):
  """D5: metadata and no chunk is all that there is."""
  arrays = {
    f"{_PREFIX}.layers_{i}.w": np.zeros(shape, np.float32)
    for i in range(_LAYERS)
  }
  stores.write_item(tmp_path / "in/3/items", arrays, zarr_format=zarr_format)
  step = _convert(tmp_path / "in", tmp_path / "there", _STACK)
  [found] = stores.read_item(Path(step["target"], "items")).values()
  axis = 1 if shape else 0
  assert found.shape == np.stack([*arrays.values()], axis).shape
  back = _convert(Path(step["target"]), tmp_path / "back", _UNSTACK)
  returned = stores.read_item(Path(back["target"], "items"))
  assert {n: v.shape for n, v in returned.items()} == {
    n: v.shape for n, v in arrays.items()
  }


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_scalars_of_layers_stack_and_unstack(zarr_format, tmp_path):
  arrays = {
    f"{_PREFIX}.layers_{i}.w": np.float32(i + 0.5) for i in range(_LAYERS)
  }
  stores.write_item(tmp_path / "in/3/items", arrays, zarr_format=zarr_format)
  step = _convert(tmp_path / "in", tmp_path / "there", _STACK)
  [found] = stores.read_item(Path(step["target"], "items")).values()
  assert found.tolist() == [0.5, 1.5, 2.5, 3.5]
  back = _convert(Path(step["target"]), tmp_path / "back", _UNSTACK)
  returned = stores.read_item(Path(back["target"], "items"))
  assert {n: float(v) for n, v in returned.items()} == {
    n: float(v) for n, v in arrays.items()
  }


@pytest.mark.parametrize("options", [_STACK, _UNSTACK, {}], ids=str)
def test_databases_of_hosts_that_never_merged(options, tmp_path):
  """D7: each host has chunks of every array; the union is the item."""
  layers = _layers("float32")
  if options is _UNSTACK:
    arrays = {f"{_PREFIX}.layers.w": np.stack(layers, 1)}
    chunks = {f"{_PREFIX}.layers.w": (2, _LAYERS, 10)}
  else:
    arrays = {f"{_PREFIX}.layers_{i}.w": v for i, v in enumerate(layers)}
    chunks = dict.fromkeys(arrays, (2, 10))
  stores.write_split_item(tmp_path / "in/3/items", arrays, chunks=chunks)
  step = _convert(tmp_path / "in", tmp_path / "out", options)
  found = stores.read_item(Path(step["target"], "items"))
  if options is _STACK:
    assert _same(found[f"{_PREFIX}.layers.w"], np.stack(layers, 1))
  else:
    for i, values in enumerate(layers):
      assert _same(found[f"{_PREFIX}.layers_{i}.w"], values)


def test_a_golden_checkpoint_without_its_merged_manifest(tmp_path):
  """D7: a host's database is what is left when the merge is lost."""
  source = golden.copy_checkpoints("pretrain_scan_sharded", tmp_path)
  merged = _convert(source / "4", tmp_path / "merged", _UNSTACK)
  for item in (source / "4").glob("*/manifest.ocdbt"):
    item.unlink()
  left = [*(source / "4").glob("*/ocdbt.process_*/manifest.ocdbt")]
  if not left:
    pytest.fail("the golden checkpoint has no databases of hosts")
  found = _convert(source / "4", tmp_path / "out", _UNSTACK)
  assert stores.digests(Path(found["target"], "items")) == stores.digests(
    Path(merged["target"], "items")
  )


_SIDE_FILES = (
  "_METADATA",
  "_sharding",
  "array_metadatas",
  "commit_success.txt",
  "_CHECKPOINT_METADATA",
)


@pytest.mark.parametrize("missing", _SIDE_FILES)
@pytest.mark.parametrize(
  ("name", "options"),
  [("pretrain_scan", _UNSTACK), ("pretrain_unscan", _STACK)],
)
def test_side_files_that_are_missing_one_at_a_time(
  name, options, missing, tmp_path
):
  """D18: what arrays say of themselves is enough."""
  whole = _convert(golden.checkpoints(name) / "4", tmp_path / "whole", options)
  source = golden.copy_checkpoints(name, tmp_path)
  gone = [*(source / "4").rglob(missing)]
  assert gone
  for path in gone:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
  found = _convert(source / "4", tmp_path / "out", options)
  assert stores.digests(Path(found["target"], "items")) == stores.digests(
    Path(whole["target"], "items")
  )


@pytest.mark.parametrize("impl", ["threefry2x32", "unsafe_rbg"])
@pytest.mark.parametrize("to", ["maxtext", "tunix"])
def test_typed_rng_keys_that_orbax_wrote(impl, to, tmp_path):
  """D3: the kind of a key is recorded, and its words are kept."""
  key = jax.random.key(5, impl=impl)
  weight = np.ones((2, 3), np.float32)
  tree = {
    "params": {"params": {"decoder": {"w": weight}}},
    "nnx_aux": {"model": {"decoder": {"rngs": {"dropout": {"key": key}}}}},
  }
  with ocp.CheckpointManager(tmp_path / "in") as manager:
    args = ocp.args.Composite(items=ocp.args.PyTreeSave(tree))
    manager.save(3, args=args)
  step = _convert(tmp_path / "in", tmp_path / "out", {"to": to, "rng": "keep"})
  item = Path(step["target"], "items" if to == "maxtext" else "model_params")
  found = {k: v for k, v in stores.read_item(item).items() if "rngs" in k}
  kept = impl == "unsafe_rbg" or to == "tunix"
  assert bool(found) is kept
  if not kept:
    return
  [(name, words)] = found.items()
  assert words.tobytes() == np.asarray(jax.random.key_data(key)).tobytes()
  entries = json.loads((item / "array_metadatas/process_0").read_text())
  recorded = {
    each["array_metadata"]["param_name"]: each["array_metadata"]["ext_metadata"]
    for each in entries["array_metadatas"]
  }
  assert recorded[name] == {"random_key_impl": impl}


_ORBAX_KINDS = {
  "ocdbt v2": {"use_ocdbt": True, "use_zarr3": False},
  "ocdbt v3": {"use_ocdbt": True, "use_zarr3": True},
  "directories v2": {"use_ocdbt": False, "use_zarr3": False},
  "directories v3": {"use_ocdbt": False, "use_zarr3": True},
}


@pytest.mark.parametrize("options", [_STACK, {}], ids=["stacked", "kept"])
@pytest.mark.parametrize("kind", _ORBAX_KINDS)
def test_what_orbax_writes_and_reads(kind, options, tmp_path):
  """E6: four ways to store an item; Orbax v0 and v1 read what we make."""
  layers = [values.astype(ml_dtypes.bfloat16) for values in _layers("float32")]
  tree = {
    "params": {
      "params": {
        "decoder": {f"layers_{i}": {"w": v} for i, v in enumerate(layers)}
      }
    },
    "step": np.int32(4),
    "opt_state": [
      {
        "count": np.int32(4),
        "mu": {"params": {"decoder": {"w": np.ones(3, np.float32)}}},
        "nu": {"params": {"decoder": {"w": np.ones(3, np.float32)}}},
      },
      None,
      {"count": np.int32(4)},
    ],
  }
  handler = ocp.PyTreeCheckpointHandler(**_ORBAX_KINDS[kind])
  with ocp.Checkpointer(handler) as checkpointer:
    checkpointer.save(tmp_path / "in/3/items", tree)
  step = _convert(tmp_path / "in", tmp_path / "out", options)
  expected = readers.digests(_stacked(tree) if options else tree)
  for found in readers.without_target(Path(step["target"])).values():
    assert found == expected
  for found in readers.with_target(Path(step["target"])).values():
    assert found == expected


def _stacked(tree):
  layers = tree["params"]["params"]["decoder"]
  stack = np.stack([layers[f"layers_{i}"]["w"] for i in range(_LAYERS)], 1)
  decoder = {"layers": {"w": stack}}
  return tree | {"params": {"params": {"decoder": decoder}}}


def _orbax_v0(step: Path, item: str):
  return ocp.PyTreeCheckpointer().restore(step / item)


def _orbax_v1(step: Path, item: str):
  return readers.v1.load_checkpointables(step, {item: None})[item]


@pytest.fixture(scope="module")
def accumulating(tmp_path_factory):
  """A step for a trainer that accumulates gradients."""
  step = _convert(
    golden.checkpoints("pretrain_scan") / "4",
    tmp_path_factory.mktemp("accumulating"),
    {"to": "tunix", "optimizer_wrappers": "multi_steps,clip"},
  )
  return Path(step["target"])


def test_gradients_of_a_finished_update_are_zeros(accumulating):
  root = "opt_state.acc_grads."
  gradients = {
    name.removeprefix(root): values
    for name, values in stores.read_item(
      accumulating / "optimizer_state"
    ).items()
    if name.startswith(root)
  }
  weights = {
    name: values
    for name, values in stores.read_item(accumulating / "model_params").items()
    if "rngs" not in name
  }
  assert gradients.keys() == weights.keys()
  for name, values in gradients.items():
    assert not values.any()
    assert values.shape == weights[name].shape
    assert values.dtype == weights[name].dtype


@pytest.mark.parametrize(
  "read",
  [
    _orbax_v0,
    _orbax_v1,
  ],
)
def test_orbax_reads_gradients_of_zero(accumulating, read):
  """E6, D1: what is not stored is a zero to each reader."""
  tree = read(accumulating, "optimizer_state")
  found = jax.tree.leaves(tree["opt_state"]["acc_grads"])
  assert found
  assert not any(np.asarray(values).any() for values in found)


def test_codecs_are_those_of_numcodecs(tmp_path):
  """Chunks that numcodecs and gzip made, not TensorStore."""
  kind = _KINDS["v2 gzip"]
  layers = _layers("float32")
  item = tmp_path / "in/3/items"
  stacked = np.ascontiguousarray(np.stack(layers, 1))
  _write(item, f"{_PREFIX}.layers.w", stacked, kind, stacked=True)
  key = f"{_PREFIX}.layers.w"
  metadata = json.loads(
    ts.KvStore.open(stores.kvstore(item)).result()[f"{key}/.zarray"]
  )
  for codec, data in (
    ({"id": "gzip", "level": 1}, gzip.compress(stacked.tobytes())),
    (
      {"id": "lz4", "acceleration": 1},
      numcodecs.LZ4().encode(stacked.tobytes()),
    ),
  ):
    metadata["compressor"] = codec
    stores.overwrite_key(item, f"{key}/.zarray", json.dumps(metadata).encode())
    stores.overwrite_key(item, f"{key}/0.0.0", bytes(data))
    out = tmp_path / codec["id"]
    step = _convert(tmp_path / "in", out, _UNSTACK)
    found = stores.read_item(Path(step["target"], "items"))
    for i, values in enumerate(layers):
      assert _same(found[f"{_PREFIX}.layers_{i}.w"], values)
