import dataclasses
import itertools

import numpy as np
import pytest
import tensorstore as ts

from relayout import _native
from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  UnsupportedError,
)
from relayout.metadata import zarr_array
from relayout.metadata.zarr_unshard import sharded_array, unshard_array_spec
from tests.native import rekeying
from tests.support.specs import BYTES, ZSTD, sharding, spec_of_v2, spec_of_v3

CRC = {"name": "crc32c"}
GRIDS = [
  # Shape, shard, inner chunk.
  ((4, 6), (2, 6), (1, 3)),
  ((5, 7), (4, 4), (2, 1)),
  ((3,), (8,), (2,)),
  ((1, 5, 3), (2, 4, 2), (1, 2, 2)),
]


def _values(spec):
  """Returns an array of which whole inner chunks are zero, or not stored."""
  rng = np.random.default_rng(1)
  values = rng.integers(1, 9, spec.shape).astype(np.float32)
  inner = spec.inner_chunk_shape
  for origin in itertools.product(
    *(range(0, n, c) for n, c in zip(spec.shape, inner, strict=True))
  ):
    if rng.random() < 0.4:
      region = zip(origin, inner, strict=True)
      values[tuple(slice(o, o + c) for o, c in region)] = 0
  return values


def _write(directory, spec, values, name="a", **config):
  """Writes `spec` into a database, or as files with `kind="file"`."""
  kvstore = {"driver": "file", "path": f"{directory}/{name}/"}
  if config.pop("kind", "ocdbt") == "ocdbt":
    kvstore = {
      "driver": "ocdbt",
      "base": f"file://{directory}/",
      "path": f"{name}/",
      "config": config,
    }
  raw = {k: v for k, v in spec.raw.items() if k != "node_type"}
  store = ts.open(
    {"driver": "zarr3", "kvstore": kvstore, "metadata": raw}, create=True
  ).result()
  store.write(values).result()


def _flatten(listing, spec, name="a"):
  flat = unshard_array_spec(spec)
  metadata = zarr_array.array_metadata_bytes(flat)
  array = sharded_array(name, spec, metadata)
  return _native.flatten_shards(listing, [array]), flat


def _read(directory, name):
  kvstore = {
    "driver": "ocdbt",
    "base": f"file://{directory}/",
    "path": f"{name}/",
  }
  store = ts.open({"driver": "zarr3", "kvstore": kvstore}, read=True).result()
  return store.read().result()


def _rekey(flat_listing, target):
  plan = rekeying.plan_renames(flat_listing, lambda name: f"new.{name}")
  rekeying.link_and_apply(plan, [flat_listing], target)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("kind", ["ocdbt", "inline", "file"])
@pytest.mark.parametrize(("shape", "shard", "inner"), GRIDS)
def test_inner_chunks_become_an_array(
  tmp_path, shape, shard, inner, kind, location, checksum
):
  codec = sharding(
    inner,
    index_codecs=[BYTES, CRC] if checksum else [BYTES],
    index_location=location,
  )
  spec = spec_of_v3(shape, shard, inner, codecs=[codec])
  values = _values(spec)
  config = {
    "ocdbt": {"max_inline_value_bytes": 0},
    "inline": {"max_inline_value_bytes": 1 << 20},
    "file": {"kind": "file"},
  }[kind]
  _write(tmp_path / "in", spec, values, **config)
  native = _native.list_directory if kind == "file" else _native.list_database
  flat_listing, flat = _flatten(native(tmp_path / "in"), spec)
  assert flat.chunk_shape == tuple(inner)
  assert flat.inner_chunk_shape is None
  (entry,) = flat_listing.arrays()
  assert entry.num_chunks == _num_stored(values, inner)
  assert zarr_array.parse_array_metadata("zarr.json", entry.metadata) == flat
  _rekey(flat_listing, tmp_path / "out")
  assert _read(tmp_path / "out", "new.a").tobytes() == values.tobytes()


def _num_stored(values, inner):
  """Returns the number of inner chunks that hold anything."""
  origins = itertools.product(
    *(range(0, n, c) for n, c in zip(values.shape, inner, strict=True))
  )
  return sum(
    bool(
      values[
        tuple(slice(o, o + c) for o, c in zip(origin, inner, strict=True))
      ].any()
    )
    for origin in origins
  )


@pytest.mark.parametrize(
  "encoding",
  [
    {"name": "v2", "configuration": {"separator": "."}},
    {"name": "v2", "configuration": {"separator": "/"}},
    {"name": "default", "configuration": {"separator": "."}},
  ],
)
def test_key_formats_stay(tmp_path, encoding):
  spec = spec_of_v3(
    [4, 4], [2, 4], [1, 2], chunk_key_encoding=encoding, fill_value=-1.0
  )
  values = _values(spec)
  _write(tmp_path / "in", spec, values)
  flat_listing, _ = _flatten(_native.list_database(tmp_path / "in"), spec)
  _rekey(flat_listing, tmp_path / "out")
  assert _read(tmp_path / "out", "new.a").tobytes() == values.tobytes()


def test_only_the_arrays_asked_for(tmp_path):
  spec = spec_of_v3([4, 4], [2, 4], [1, 2])
  for name in ("a", "b", "a.b"):
    _write(tmp_path / "in", spec, _values(spec), name)
  listing = _native.list_database(tmp_path / "in")
  flat_listing, _ = _flatten(listing, spec, "a.b")
  assert [entry.name for entry in flat_listing.arrays()] == ["a.b"]
  with pytest.raises(ValueError, match='"c"'):
    _flatten(listing, spec, "c")


def test_codecs_in_the_shard_stay():
  transpose = {"name": "transpose", "configuration": {"order": [1, 0]}}
  codecs = [transpose, BYTES, ZSTD]
  spec = spec_of_v3(
    [4, 4], [2, 4], [1, 2], codecs=[sharding([1, 2], codecs=codecs)]
  )
  assert unshard_array_spec(spec).raw["codecs"] == codecs


@pytest.mark.parametrize("name", ["a", "b.c"])
def test_a_damaged_index_is_named(tmp_path, name):
  spec = spec_of_v3([4, 4], [2, 4], [1, 2])
  values = np.ones((4, 4), np.float32)
  _write(tmp_path / "in", spec, values, name, kind="file")
  shard = tmp_path / "in" / name / "c" / "1" / "0"
  data = bytearray(shard.read_bytes())
  data[-10] ^= 1
  shard.write_bytes(data)
  listing = _native.list_directory(tmp_path / "in")
  with pytest.raises(CorruptCheckpointError, match=f'"{name}", shard "c/1/0"'):
    _flatten(listing, spec, name)


def test_a_shard_that_shrank_is_named(tmp_path):
  spec = spec_of_v3([4, 4], [2, 4], [1, 2])
  _write(tmp_path / "in", spec, np.ones((4, 4), np.float32), kind="file")
  listing = _native.list_directory(tmp_path / "in")
  (tmp_path / "in" / "a" / "c" / "1" / "0").write_bytes(b"")
  with pytest.raises(CorruptCheckpointError, match="c/1/0"):
    _flatten(listing, spec)


def test_an_index_of_more_chunks_than_any_is_refused(tmp_path):
  spec = spec_of_v3([1 << 40], [1 << 40], [1])
  (tmp_path / "a" / "c").mkdir(parents=True)
  (tmp_path / "a" / "zarr.json").write_bytes(b"{}")
  (tmp_path / "a" / "c" / "0").write_bytes(b"")
  with pytest.raises(UnsupportedError, match="inner chunks"):
    _flatten(_native.list_directory(tmp_path), spec)


@pytest.mark.parametrize("spec", [spec_of_v2([4], [2]), spec_of_v3([4], [2])])
def test_arrays_without_shards(spec):
  with pytest.raises(LayoutError, match="no zarr shards"):
    unshard_array_spec(spec)
  with pytest.raises(LayoutError, match="no zarr shards"):
    sharded_array("a", spec, b"")


@pytest.mark.parametrize(
  "codecs",
  [
    [
      {"name": "transpose", "configuration": {"order": [1, 0]}},
      sharding([1, 2]),
    ],
    [sharding([2, 1]), CRC],
    [sharding([2, 2], codecs=[sharding([1, 1])])],
  ],
)
def test_shards_whose_chunks_are_no_ranges(codecs):
  spec = spec_of_v3([4, 4], [2, 2], codecs=codecs)
  with pytest.raises(UnsupportedError, match=r"sharding_indexed|one level"):
    unshard_array_spec(spec)


@pytest.mark.parametrize(
  "index_codecs",
  [
    [BYTES, ZSTD],
    [CRC],
    [{"name": "bytes", "configuration": {"endian": "big"}}, CRC],
  ],
)
def test_indices_that_are_not_read(index_codecs):
  codec = sharding([1, 1], index_codecs=index_codecs)
  spec = spec_of_v3([4, 4], [2, 2], codecs=[codec])
  with pytest.raises(UnsupportedError, match="shard index"):
    sharded_array("a", spec, b"")


def test_specs_keep_the_rest():
  spec = spec_of_v3(
    [4, 4], [2, 4], [1, 2], dimension_names=["x", None], fill_value="NaN"
  )
  flat = unshard_array_spec(spec)
  changed = ("chunk_shape", "inner_chunk_shape", "raw")
  for field in dataclasses.fields(spec):
    if field.name not in changed:
      assert getattr(flat, field.name) == getattr(spec, field.name)
  assert flat.raw["dimension_names"] == ["x", None]
  assert flat.raw["fill_value"] == "NaN"
