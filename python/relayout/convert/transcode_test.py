import dataclasses
import importlib
import itertools
import json
import math

import ml_dtypes  # noqa: F401, registers bfloat16 with NumPy
import numcodecs
import numpy as np
import pytest
import tensorstore as ts

from relayout import _native
from relayout.convert import transcode
from relayout.errors import CorruptCheckpointError, UnsupportedError
from relayout.metadata import zarr_array

_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_BLOSC_V3 = {"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 4}


def _values(shape, dtype=np.float32):
  values = np.random.default_rng(0).normal(size=shape) * 10
  return values.astype(dtype)


def _kvstore(directory, kind):
  if kind == "file":
    return {"driver": "file", "path": f"{directory}/"}
  return {"driver": "ocdbt", "base": f"file://{directory}/"}


def _write(directory, driver, values, metadata, *, kind="ocdbt", name="a"):
  array = ts.open(
    {
      "driver": driver,
      "kvstore": {**_kvstore(directory, kind), "path": f"{name}/"}
      if kind == "ocdbt"
      else {"driver": "file", "path": f"{directory}/{name}/"},
      "metadata": metadata,
    },
    create=True,
    dtype=ts.dtype(values.dtype),
    shape=values.shape,
  ).result()
  array.write(values).result()


def _open(directory, kind="ocdbt", name="a"):
  """Returns the listing and the spec of an array."""
  native = {"ocdbt": _native.list_database, "file": _native.list_directory}
  listing = native[kind](directory)
  (entry,) = [entry for entry in listing.arrays() if entry.name == name]
  return listing, zarr_array.parse_array_metadata(
    f"{name}/{entry.metadata_key}", entry.metadata
  )


def _read(directory, spec, name="a"):
  driver = "zarr" if spec.zarr_format == 2 else "zarr3"
  kvstore = {"driver": "file", "path": f"{directory}/{name}/"}
  store = ts.open({"driver": driver, "kvstore": kvstore}, read=True).result()
  return store.read().result()


def _v2(compressor, chunks, **options):
  return {"compressor": compressor, "chunks": chunks, **options}


def _v3(codecs, chunk_shape):
  grid = {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}
  return {"chunk_grid": grid, "codecs": codecs}


V2_COMPRESSORS = [
  {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
  {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2},
  {"id": "gzip", "level": 4},
  {"id": "zlib", "level": 4},
  {"id": "bz2", "level": 4},
  {"id": "zstd", "level": 4},
  None,
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("compressor", V2_COMPRESSORS)
def test_arrays_of_v2(tmp_path, compressor, separator, order):
  values = _values((5, 7))
  metadata = _v2(compressor, [2, 3], order=order, dimension_separator=separator)
  _write(tmp_path / "in", "zarr", values, metadata)
  listing, spec = _open(tmp_path / "in")
  out, raw = transcode.transcode([listing], "a", spec, tmp_path / "out")
  assert raw == transcode.raw_array_spec(spec)
  assert raw.raw["compressor"] is None
  assert _read(tmp_path / "out", raw).tobytes() == values.tobytes()
  (entry,) = out.arrays()
  assert (entry.name, entry.num_chunks) == ("a", 9)
  assert entry.num_stored_bytes == 9 * 2 * 3 * 4


V3_CODECS = [
  [_BYTES, {"name": "blosc", "configuration": _BLOSC_V3}],
  [_BYTES, {"name": "gzip", "configuration": {"level": 4}}],
  [_BYTES, {"name": "gzip", "configuration": {"level": 4}}, "crc32c"],
  [
    {"name": "transpose", "configuration": {"order": [1, 0]}},
    {"name": "bytes", "configuration": {"endian": "big"}},
    {"name": "blosc", "configuration": _BLOSC_V3},
  ],
]


@pytest.mark.parametrize("kind", ["ocdbt", "file"])
@pytest.mark.parametrize("codecs", V3_CODECS)
def test_arrays_of_v3(tmp_path, codecs, kind):
  values = _values((5, 7))
  _write(tmp_path / "in", "zarr3", values, _v3(codecs, [2, 3]), kind=kind)
  listing, spec = _open(tmp_path / "in", kind)
  done = []
  _, raw = transcode.transcode(
    [listing],
    "a",
    spec,
    tmp_path / "out",
    lambda *progress: done.append(progress),
  )
  assert _read(tmp_path / "out", raw).tobytes() == values.tobytes()
  assert done == [(i, 9) for i in range(1, 10)]


@pytest.mark.parametrize("shape", [(), (0, 3), (4,)])
@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "bool"])
def test_types_and_ranks(tmp_path, dtype, driver, shape):
  values = _values(shape, dtype)
  chunk = [max(1, -(-n // 2)) for n in shape]
  metadata = (
    _v2({"id": "gzip", "level": 1}, chunk)
    if driver == "zarr"
    else _v3(V3_CODECS[1], chunk)
  )
  _write(tmp_path / "in", driver, values, metadata)
  listing, spec = _open(tmp_path / "in")
  _, raw = transcode.transcode([listing], "a", spec, tmp_path / "out")
  assert _read(tmp_path / "out", raw).tobytes() == values.tobytes()


def test_absent_chunks_stay_absent(tmp_path):
  values = np.zeros((4, 4), np.int32)
  values[3, 3] = 7
  _write(
    tmp_path / "in",
    "zarr",
    values,
    _v2({"id": "bz2"}, [2, 2], fill_value=0, dtype="<i4"),
  )
  listing, spec = _open(tmp_path / "in")
  out, raw = transcode.transcode([listing], "a", spec, tmp_path / "out")
  assert out.chunk_keys("a") == [b"1.1"]
  assert _read(tmp_path / "out", raw).tobytes() == values.tobytes()


def test_chunks_of_several_databases(tmp_path):
  """Hosts each wrote a part of one array."""
  values = _values((4, 4))
  metadata = _v2({"id": "gzip", "level": 1}, [2, 4], fill_value=0, dtype="<f4")
  listings = []
  for host in range(2):
    part = np.zeros_like(values)
    part[2 * host : 2 * host + 2] = values[2 * host : 2 * host + 2]
    _write(tmp_path / f"{host}", "zarr", part, metadata)
    listing, spec = _open(tmp_path / f"{host}")
    listings.append(listing)
  _, raw = transcode.transcode(listings, "a", spec, tmp_path / "out")
  assert _read(tmp_path / "out", raw).tobytes() == values.tobytes()


def _write_v2_by_hand(directory, values, chunks, compressor, filters):
  """Writes what TensorStore has no codecs for."""
  (directory / "a").mkdir(parents=True)
  metadata = {
    "chunks": list(chunks),
    "compressor": compressor,
    "dtype": "<i4",
    "fill_value": 0,
    "filters": filters,
    "order": "C",
    "shape": list(values.shape),
    "zarr_format": 2,
  }
  (directory / "a" / ".zarray").write_text(json.dumps(metadata))
  steps = [codec for codec in [*(filters or []), compressor] if codec]
  grid = [n // c for n, c in zip(values.shape, chunks, strict=True)]
  for index in itertools.product(*map(range, grid)):
    part = np.ascontiguousarray(
      values[
        tuple(
          slice(i * c, i * c + c) for i, c in zip(index, chunks, strict=True)
        )
      ]
    )
    data = part.reshape(-1)
    for codec in steps:
      data = numcodecs.get_codec(dict(codec)).encode(data)
    key = ".".join(map(str, index))
    (directory / "a" / key).write_bytes(bytes(memoryview(data).cast("B")))


BY_HAND = [
  ({"id": "lz4", "acceleration": 1}, None),
  (
    {"id": "lzma", "format": 1, "check": -1, "filters": None},
    None,
  ),
  ({"id": "zlib", "level": 1}, [{"id": "delta", "dtype": "<i4"}]),
  (None, [{"id": "shuffle", "elementsize": 4}]),
  ({"id": "gzip", "level": 1}, [{"id": "crc32"}]),
  (
    {"id": "blosc", "cname": "blosclz", "clevel": 1, "shuffle": 1},
    [
      {"id": "fletcher32"},
    ],
  ),
]


@pytest.mark.parametrize(("compressor", "filters"), BY_HAND)
def test_codecs_of_numcodecs(tmp_path, compressor, filters):
  values = np.arange(24, dtype=np.int32).reshape(4, 6)
  _write_v2_by_hand(tmp_path / "in", values, (2, 3), compressor, filters)
  listing, spec = _open(tmp_path / "in", "file")
  _, raw = transcode.transcode([listing], "a", spec, tmp_path / "out")
  assert raw.raw["filters"] is None
  assert _read(tmp_path / "out", raw).tobytes() == values.tobytes()


def _damaged(tmp_path, compressor, data):
  values = _values((4,))
  _write(tmp_path / "in", "zarr", values, _v2(compressor, [4]), kind="file")
  chunk = tmp_path / "in" / "a" / "0"
  chunk.write_bytes(data(chunk.read_bytes()))
  return _open(tmp_path / "in", "file")


DAMAGES = {
  "empty": lambda _: b"",
  "cut": lambda data: data[:-3],
  "random": lambda data: bytes(range(7, 7 + len(data))),
  "long": lambda data: data + bytes(1 << 20),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("compressor", V2_COMPRESSORS[:-1])
def test_damaged_chunks_are_named(tmp_path, compressor, damage):
  listing, spec = _damaged(tmp_path, compressor, DAMAGES[damage])
  with pytest.raises(CorruptCheckpointError, match="a/0"):
    transcode.transcode([listing], "a", spec, tmp_path / "out")


@pytest.mark.parametrize("identifier", ["gzip", "zlib", "bz2", "blosc", "lz4"])
@pytest.mark.parametrize("num_bytes", [12, 20, 1 << 24])
def test_chunks_of_another_size_are_refused(tmp_path, identifier, num_bytes):
  codec = numcodecs.get_codec({"id": identifier})
  listing, spec = _damaged(
    tmp_path,
    {"id": "gzip", "level": 1},
    lambda _: bytes(codec.encode(bytes(num_bytes))),
  )
  raw = {**spec.raw, "compressor": {"id": identifier}}
  spec = dataclasses.replace(spec, raw=raw)
  with pytest.raises(CorruptCheckpointError, match="a/0"):
    transcode.transcode([listing], "a", spec, tmp_path / "out")


@pytest.mark.parametrize("identifier", ["blosc", "lz4"])
def test_headers_that_lie_are_refused(tmp_path, identifier):
  def forge(_):
    size = math.prod((1 << 31,)) - 1
    if identifier == "lz4":
      return size.to_bytes(4, "little") + bytes(20)
    head = b"\2\1\1\4" + size.to_bytes(4, "little") + bytes(4)
    return head + (40).to_bytes(4, "little") + bytes(24)

  listing, spec = _damaged(tmp_path, {"id": "gzip"}, forge)
  raw = {**spec.raw, "compressor": {"id": identifier}}
  spec = dataclasses.replace(spec, raw=raw)
  with pytest.raises(CorruptCheckpointError, match="claim to hold"):
    transcode.transcode([listing], "a", spec, tmp_path / "out")


@pytest.mark.parametrize("key", ["1", "00", "0.0", "x", "+0", "0 "])
def test_keys_of_no_chunk_are_refused(tmp_path, key):
  values = _values((4,))
  _write(tmp_path / "in", "zarr", values, _v2({"id": "gzip"}, [4]), kind="file")
  (tmp_path / "in" / "a" / key).write_bytes(b"")
  listing, spec = _open(tmp_path / "in", "file")
  with pytest.raises(CorruptCheckpointError, match="no key of a chunk"):
    transcode.transcode([listing], "a", spec, tmp_path / "out")


@pytest.mark.parametrize("key", ["../../evil", "0/../../evil"])
def test_keys_do_not_lead_out(tmp_path, key):
  values = _values((4,))
  _write(tmp_path / "in", "zarr", values, _v2({"id": "gzip"}, [4]))
  ts.KvStore.open(_kvstore(tmp_path / "in", "ocdbt")).result()[f"a/{key}"] = (
    b"x"
  )
  listing, spec = _open(tmp_path / "in")
  with pytest.raises(CorruptCheckpointError, match="no key of a chunk"):
    transcode.transcode([listing], "a", spec, tmp_path / "out")
  assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "x" * 256])
def test_names_do_not_lead_out(tmp_path, name):
  values = _values((4,))
  _write(tmp_path / "in", "zarr", values, _v2({"id": "gzip"}, [4]), name=name)
  listing, spec = _open(tmp_path / "in", name=name)
  with pytest.raises(UnsupportedError, match="directory"):
    transcode.transcode([listing], name, spec, tmp_path / "out")
  assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("identifier", ["pickle", "json2", "vlen-utf8", "new"])
def test_unknown_codecs_are_refused(tmp_path, identifier):
  listing, spec = _damaged(tmp_path, {"id": "gzip"}, lambda data: data)
  raw = {**spec.raw, "compressor": {"id": identifier}}
  spec = dataclasses.replace(spec, raw=raw)
  with pytest.raises(UnsupportedError, match=identifier):
    transcode.transcode([listing], "a", spec, tmp_path / "out")


def test_without_numcodecs(tmp_path, monkeypatch):
  values = _values((4,))
  _write(tmp_path / "in", "zarr", values, _v2({"id": "blosc"}, [4]))
  listing, spec = _open(tmp_path / "in")

  def missing(name):
    raise ImportError(name)

  monkeypatch.setattr(importlib, "import_module", missing)
  with pytest.raises(UnsupportedError, match="pip install numcodecs"):
    transcode.transcode([listing], "a", spec, tmp_path / "out")


def test_shards_are_refused():
  inner = {"chunk_shape": [1], "codecs": [_BYTES], "index_codecs": [_BYTES]}
  codec = {"name": "sharding_indexed", "configuration": inner}
  metadata = {
    **_v3([codec], [2]),
    "chunk_key_encoding": {"name": "default"},
    "data_type": "float32",
    "fill_value": 0,
    "node_type": "array",
    "shape": [4],
    "zarr_format": 3,
  }
  spec = zarr_array.parse_array_metadata(
    "a/zarr.json", json.dumps(metadata).encode()
  )
  with pytest.raises(UnsupportedError, match="inner chunks"):
    transcode.raw_array_spec(spec)
