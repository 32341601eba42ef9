import gzip
import json
import struct
import zlib

import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts

from relayout.errors import CorruptCheckpointError, UnsupportedError
from relayout.metadata import zarr_array, zarr_scalar
from relayout.metadata.small_array import chunk_key, decode_small_array

_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_BIG = {"name": "bytes", "configuration": {"endian": "big"}}
_CRC = {"name": "crc32c"}
_GZIP = {"name": "gzip", "configuration": {"level": 5}}
_ZSTD = {"name": "zstd", "configuration": {"level": 3}}


def _sharding(inner, codecs, **others):
  return {
    "name": "sharding_indexed",
    "configuration": {
      "chunk_shape": inner,
      "codecs": codecs,
      "index_codecs": [_BYTES, _CRC],
    }
    | others,
  }


def _written(values, driver, metadata, *, store_fill=True):
  """Returns what TensorStore stores of `values`, by key."""
  kvstore = ts.KvStore.open("memory://").result()
  store = ts.open(
    {
      "driver": driver,
      "metadata": metadata,
      "store_data_equal_to_fill_value": store_fill,
    },
    kvstore=kvstore,
    create=True,
    dtype=ts.dtype(values.dtype),
    shape=values.shape,
  ).result()
  store.write(values).result()
  return {key.decode(): kvstore[key] for key in kvstore.list().result()}


def _decoded(stored):
  (key,) = {".zarray", "zarr.json"} & stored.keys()
  spec = zarr_array.parse_array_metadata(f"a/{key}", stored[key])
  return decode_small_array(spec, stored.get, "a")


def _v3(chunk, codecs, **others):
  grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
  return {"chunk_grid": grid, "codecs": codecs} | others


_DTYPES = (
  *(np.bool_, np.int8, np.int16, np.int32, np.int64),
  *(np.uint8, np.uint16, np.uint32, np.uint64),
  *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16),
)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_data_types(dtype, driver):
  values = np.array([0, 1, 3, 100], dtype)
  metadata = {"compressor": None} if driver == "zarr" else {}
  stored = _written(values, driver, metadata)
  assert _decoded(stored) == values.astype(np.float64).tolist()


def test_extremes():
  values = np.array([-(1 << 63), (1 << 63) - 1], np.int64)
  assert _decoded(_written(values, "zarr3", {})) == values.tolist()
  bits = np.array([np.inf, -0.0, np.nan], np.float32)
  decoded = _decoded(_written(bits, "zarr3", {}))
  assert struct.pack("<3f", *decoded) == bits.tobytes()


@pytest.mark.parametrize("dtype", ["<u4", ">u4"])
@pytest.mark.parametrize(
  "compressor",
  [
    None,
    {"id": "zstd", "level": 1},
    {"id": "gzip", "level": 1},
    {"id": "zlib", "level": 1},
  ],
)
@pytest.mark.parametrize("separator", [".", "/"])
def test_v2(dtype, compressor, separator):
  values = np.arange(12, dtype=np.uint32).reshape(4, 3)
  metadata = {
    "compressor": compressor,
    "chunks": [3, 2],
    "dtype": dtype,
    "dimension_separator": separator,
  }
  stored = _written(values, "zarr", metadata)
  assert _decoded(stored) == list(range(12))


@pytest.mark.parametrize(
  "codecs",
  [
    [_BYTES],
    [_BIG],
    [_BYTES, _ZSTD],
    [_BYTES, _GZIP],
    [_BYTES, _CRC],
    [_BIG, _ZSTD, _CRC],
    [_BYTES, _GZIP, _ZSTD],
    [_sharding([1, 2], [_BYTES])],
    [_sharding([3, 2], [_BIG, _ZSTD])],
    [_sharding([1, 1], [_BYTES, _CRC])],
    [_sharding([1, 1], [_BYTES, _ZSTD], index_location="start")],
    [_sharding([1, 1], [_BYTES], index_codecs=[_BYTES])],
  ],
)
@pytest.mark.parametrize("encoding", ["default", "v2"])
def test_v3(codecs, encoding):
  values = np.arange(12, dtype=np.uint32).reshape(4, 3)
  metadata = _v3([3, 2], codecs, chunk_key_encoding={"name": encoding})
  stored = _written(values, "zarr3", metadata)
  assert _decoded(stored) == list(range(12))


@pytest.mark.parametrize(
  ("driver", "metadata"), [("zarr", {"compressor": None}), ("zarr3", {})]
)
def test_scalars(driver, metadata):
  stored = _written(np.array(7, np.int32), driver, metadata)
  assert _decoded(stored) == [7]


def test_no_elements():
  metadata = {"shape": [0, 4], "chunks": [1, 4], "compressor": None}
  assert _decoded(_written(np.zeros((0, 4)), "zarr", metadata)) == []


def test_absent_chunks_are_the_fill_value():
  values = np.array([5, 5, 1, 2], np.int32)
  metadata = _v3([2], [_BYTES], fill_value=5, data_type="int32")
  stored = _written(values, "zarr3", metadata, store_fill=False)
  assert "c/0" not in stored
  assert _decoded(stored) == [5, 5, 1, 2]


def test_absent_inner_chunks_are_the_fill_value():
  values = np.array([5, 5, 1, 2], np.int32)
  codecs = [_sharding([2], [_BYTES])]
  metadata = _v3([4], codecs, fill_value=5, data_type="int32")
  stored = _written(values, "zarr3", metadata, store_fill=False)
  assert len(stored["c/0"]) == 8 + 2 * 16 + 4
  assert _decoded(stored) == [5, 5, 1, 2]


@pytest.mark.parametrize(
  ("fill", "expected"),
  [
    ("NaN", float("nan")),
    ("-Infinity", float("-inf")),
    ("0x3f800000", 1.0),
    (3, 3.0),
  ],
)
def test_spelled_fill_values(fill, expected):
  metadata = {
    "shape": [],
    "zarr_format": 3,
    "node_type": "array",
    "data_type": "float32",
    "fill_value": fill,
    "chunk_key_encoding": {"name": "default"},
  }
  data = json.dumps(metadata | _v3([], [_BYTES])).encode()
  (value,) = _decoded({"zarr.json": data})
  assert struct.pack("<f", value) == struct.pack("<f", expected)


def test_null_fill_value_is_zero():
  stored = _v2_stored({"compressor": None}, b"")
  del stored["0"]
  assert _decoded(stored) == [0, 0]


def _v2_stored(changes, chunk):
  metadata = {
    "chunks": [2],
    "compressor": None,
    "dtype": "<i4",
    "fill_value": None,
    "filters": None,
    "order": "C",
    "shape": [2],
    "zarr_format": 2,
  }
  return {".zarray": json.dumps(metadata | changes).encode(), "0": chunk}


_TWO = struct.pack("<2i", 1, 2)


@pytest.mark.parametrize(
  ("compressor", "chunk", "message"),
  [
    (None, _TWO[:-1], "has 7 bytes of values, not 8"),
    (None, _TWO + b"x", "has 9 bytes of values, not 8"),
    ({"id": "zstd"}, b"junk", "a: "),
    ({"id": "gzip"}, b"junk", "not valid gzip"),
    ({"id": "gzip"}, gzip.compress(_TWO)[:-5], "cut short"),
    ({"id": "zlib"}, zlib.compress(b"\0" * 1_000_000), "more than"),
    ({"id": "zlib"}, zlib.compress(_TWO[:4]), "has 4 bytes of values, not 8"),
  ],
)
def test_damaged_chunks_are_named(compressor, chunk, message):
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    _decoded(_v2_stored({"compressor": compressor}, chunk))
  assert str(caught.value).startswith("a: ")


def test_wrong_checksum_is_refused():
  stored = _written(np.arange(3), "zarr3", _v3([3], [_BYTES, _CRC]))
  stored["c/0"] = b"\1" + stored["c/0"][1:]
  with pytest.raises(CorruptCheckpointError, match="checksum is wrong"):
    _decoded(stored)


@pytest.mark.parametrize("location", ["start", "end"])
def test_damaged_shards_are_refused(location):
  codecs = [_sharding([1], [_BYTES], index_location=location)]
  stored = _written(np.arange(1, 4), "zarr3", _v3([3], codecs))
  whole = stored["c/0"]
  assert _decoded(stored) == [1, 2, 3]
  for length in range(len(whole)):
    stored["c/0"] = whole[:length]
    with pytest.raises(CorruptCheckpointError, match=r"^a: "):
      _decoded(stored)


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"compressor": {"id": "blosc"}}, "codec 'blosc'"),
    ({"filters": [{"id": "delta"}]}, "codec 'delta'"),
    ({"shape": [5000]}, "more than the 4096 elements"),
    ({"chunks": [1 << 40]}, "bytes that are decoded one by one"),
    ({"dtype": "<c8"}, "type complex64"),
    ({"shape": [2, 2], "chunks": [2, 2], "order": "F"}, "another order than C"),
  ],
)
def test_what_is_not_decoded_is_unsupported(changes, message):
  stored = _v2_stored(changes, _TWO)
  stored["0.0"] = _TWO * 2
  with pytest.raises(UnsupportedError, match=message) as caught:
    _decoded(stored)
  assert str(caught.value).startswith("a: ")


def test_shards_in_shards_are_unsupported():
  codecs = [_sharding([2], [_sharding([1], [_BYTES])])]
  with pytest.raises(UnsupportedError, match="sharding_indexed within"):
    _decoded(_written(np.arange(4), "zarr3", _v3([4], codecs)))


def test_codecs_of_whole_shards_are_unsupported():
  stored = _written(np.arange(4), "zarr3", _v3([4], [_sharding([2], [_BYTES])]))
  metadata = json.loads(stored["zarr.json"])
  metadata["codecs"].append(_GZIP)
  stored["zarr.json"] = json.dumps(metadata).encode()
  with pytest.raises(UnsupportedError, match="codec after sharding_indexed"):
    _decoded(stored)


def test_fill_value_of_another_type_is_corrupt():
  stored = _v2_stored({"fill_value": "NaN"}, _TWO)
  with pytest.raises(CorruptCheckpointError, match="fill value 'NaN'"):
    _decoded(stored)


def test_chunk_keys():
  scalar = zarr_scalar.scalar_array("int32", 2)
  assert chunk_key(scalar, ()) == "0"
  assert chunk_key(zarr_scalar.scalar_array("int32", 3), ()) == "c"
