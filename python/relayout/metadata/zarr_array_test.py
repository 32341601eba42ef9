import copy
import json

import ml_dtypes  # noqa: F401, registers bfloat16 and its like with NumPy
import numpy as np
import pytest
import tensorstore as ts

from relayout.errors import CorruptCheckpointError, UnsupportedError
from relayout.metadata import zarr_array, zarr_order
from tests.support import golden, stores

V2 = {
  "chunks": [4, 2],
  "compressor": {"id": "zstd", "level": 1},
  "dimension_separator": ".",
  "dtype": "<f4",
  "fill_value": None,
  "filters": None,
  "order": "C",
  "shape": [8, 2],
  "zarr_format": 2,
}
_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_SHARDING = {
  "name": "sharding_indexed",
  "configuration": {
    "chunk_shape": [2, 2],
    "codecs": [_BYTES, {"name": "zstd", "configuration": {"level": 3}}],
    "index_codecs": [_BYTES, {"name": "crc32c"}],
  },
}
V3 = {
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 2]}},
  "chunk_key_encoding": {"name": "default"},
  "codecs": [_SHARDING],
  "data_type": "bfloat16",
  "fill_value": 0.0,
  "node_type": "array",
  "shape": [8, 2],
  "zarr_format": 3,
}


def _parse(metadata):
  key = ".zarray" if metadata.get("zarr_format") == 2 else "zarr.json"
  data = json.dumps(metadata).encode()
  return zarr_array.parse_array_metadata(f"params.kernel/{key}", data)


def _changed(metadata, path, value):
  """Returns a copy of `metadata` with the member at `path` replaced."""
  result = copy.deepcopy(metadata)
  *parents, last = path.split("/")
  place = result
  for key in parents:
    place = place[int(key) if key.isdigit() else key]
  if value is ...:
    del place[last]
  else:
    place[last] = value
  return result


def test_v2():
  spec = _parse(V2)
  assert spec.shape == (8, 2)
  assert spec.chunk_shape == (4, 2)
  assert spec.inner_chunk_shape is None
  assert spec.dtype == "float32"
  assert spec.zarr_format == 2
  assert (spec.key_style, spec.key_separator) == ("v2", ".")
  assert spec.raw == V2


def test_v3():
  spec = _parse(V3)
  assert spec.shape == (8, 2)
  assert spec.chunk_shape == (4, 2)
  assert spec.inner_chunk_shape == (2, 2)
  assert spec.dtype == "bfloat16"
  assert spec.zarr_format == 3
  assert (spec.key_style, spec.key_separator) == ("default", "/")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
  "dtype",
  [
    *("bool", "int4", "int8", "uint16", "int32", "uint64", "float16"),
    *("bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"),
  ],
)
@pytest.mark.parametrize("shape", [(), (3,), (4, 5), (0, 2)])
def test_what_tensorstore_writes_comes_back_to_the_byte(
  tmp_path, zarr_format, dtype, shape
):
  values = np.zeros(shape, ts.dtype(dtype).numpy_dtype)
  stores.write_item(tmp_path, {"a": values}, zarr_format=zarr_format)
  kvstore = ts.KvStore.open(stores.kvstore(tmp_path)).result()
  key = "a/.zarray" if zarr_format == 2 else "a/zarr.json"
  data = kvstore[key]
  spec = zarr_array.parse_array_metadata(key, data)
  assert zarr_array.array_metadata_bytes(spec) == data
  assert (spec.dtype, spec.shape) == (dtype, shape)
  assert spec.num_bytes == values.nbytes
  assert zarr_order.byte_order(spec) == "little"


@pytest.mark.parametrize(
  "name", ["sft_unscan_sharded", "pretrain_scan_sharded"]
)
def test_golden_metadata_comes_back_to_the_byte(name):
  num_arrays = 0
  for path in golden.checkpoints(name).glob("*/*/manifest.ocdbt"):
    kvstore = ts.KvStore.open(stores.kvstore(path.parent)).result()
    for array, driver in stores.array_names(path.parent).items():
      key = f"{array}/{'.zarray' if driver == 'zarr' else 'zarr.json'}"
      spec = zarr_array.parse_array_metadata(key, kvstore[key])
      assert zarr_array.array_metadata_bytes(spec) == kvstore[key]
      num_arrays += 1
  assert num_arrays > 40


@pytest.mark.parametrize(
  ("path", "value", "message"),
  [
    ("zarr_format", 3, "expected an integer from 2 to 2"),
    ("shape", ..., "shape: expected an array of integers, found nothing"),
    ("shape", 8, "shape: expected an array of integers"),
    ("shape", [8, -1], "shape: 1: expected an integer from 0"),
    ("shape", [8, 2.0], "shape: 1: expected an integer"),
    ("shape", [8, True], "shape: 1: expected an integer"),
    ("shape", [1 << 70, 2], "shape: 0: expected an integer"),
    ("shape", [1 << 40, 1 << 40], "fewer than 2\\*\\*62 bytes"),
    ("shape", [1] * 33, "at most 32 axes"),
    ("shape", [8], "a chunk shape of rank 1"),
    ("chunks", [4, 0], "chunks: 1: expected an integer from 1"),
    ("chunks", [4], "a chunk shape of rank 2"),
    ("chunks", [1 << 50, 1 << 50], "fewer than 2\\*\\*62 bytes"),
    ("dtype", 4, "dtype: expected a string"),
    ("dtype", "|f4", "no byte order"),
    ("order", "A", "expected 'C' or 'F'"),
    ("order", None, "order: expected a string"),
    ("compressor", "zstd", "compressor: expected an object"),
    ("compressor", {"id": 3}, "compressor: id: expected a string"),
    ("filters", {}, "filters: expected an array"),
    ("filters", [{}], "filters: 0: id: expected a string"),
    ("dimension_separator", "-", "expected '.' or '/'"),
    ("fill_value", {}, "fill_value: expected a number"),
    ("fill_value", 10**50, "fill_value: expected an integer"),
  ],
)
def test_damaged_v2_is_named(path, value, message):
  changed = _changed(V2, path, value)
  data = json.dumps(changed).encode()
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    zarr_array.parse_array_metadata("params.kernel/.zarray", data)
  assert str(caught.value).startswith("params.kernel/.zarray: ")


_CONFIGURATION = "codecs/0/configuration"


@pytest.mark.parametrize(
  ("path", "value", "message"),
  [
    ("zarr_format", 2, "expected an integer from 3 to 3"),
    ("node_type", "group", "expected 'array'"),
    ("shape", [8], "a chunk shape of rank 1"),
    ("data_type", 3, "the name of a data type"),
    ("chunk_grid", {}, "chunk_grid: name: expected a string"),
    ("chunk_grid/configuration", [], "configuration: expected an object"),
    ("chunk_grid/configuration/chunk_shape", [0, 2], "an integer from 1"),
    ("chunk_key_encoding", None, "expected an object"),
    (
      "chunk_key_encoding",
      {"name": "v2", "configuration": {"separator": "x"}},
      "separator: expected '.' or '/'",
    ),
    ("fill_value", None, "fill_value: expected a number"),
    ("codecs", [], "one codec that turns the array into bytes"),
    ("codecs", [_BYTES, _BYTES], "one codec that turns"),
    ("codecs", {}, "codecs: expected an array"),
    ("codecs", [{"name": 3}], "name: expected a string"),
    ("codecs", [{"name": "transpose"}], "expected an object, found nothing"),
    (
      "codecs",
      [{"name": "transpose", "configuration": {"order": [0, 0]}}, _BYTES],
      "a permutation of the 2 axes",
    ),
    (
      "codecs",
      [{"name": "bytes", "configuration": {"endian": "middle"}}],
      "expected 'little' or 'big'",
    ),
    (_CONFIGURATION, ..., "expected an object, found nothing"),
    (f"{_CONFIGURATION}/chunk_shape", [3, 2], "lengths that divide"),
    (f"{_CONFIGURATION}/chunk_shape", [8, 2], "lengths that divide"),
    (f"{_CONFIGURATION}/chunk_shape", [2], "a chunk shape of rank 2"),
    (f"{_CONFIGURATION}/codecs", [], "one codec that turns"),
    (f"{_CONFIGURATION}/index_codecs", 3, "expected an array"),
    (f"{_CONFIGURATION}/index_location", "middle", "'start' or 'end'"),
    ("dimension_names", ["a"], "2 dimension names"),
    ("dimension_names", ["a", 3], "dimension_names: 1: expected a string"),
    ("attributes", 3, "attributes: expected an object"),
  ],
)
def test_damaged_v3_is_named(path, value, message):
  data = json.dumps(_changed(V3, path, value)).encode()
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    zarr_array.parse_array_metadata("params.kernel/zarr.json", data)
  assert str(caught.value).startswith("params.kernel/zarr.json: ")


@pytest.mark.parametrize(
  "metadata",
  [
    _changed(V2, "dtype", [["a", "<f4"], ["b", "<i4"]]),
    _changed(V2, "dtype", "<U10"),
    _changed(V2, "dtype", "|V8"),
    _changed(V2, "dtype", "<M8[ns]"),
    _changed(V3, "data_type", "r16"),
    _changed(V3, "data_type", {"name": "numpy.datetime64"}),
    _changed(V3, "chunk_grid/name", "rectilinear"),
    _changed(V3, "chunk_key_encoding/name", "suffix"),
    _changed(V3, "storage_transformers", [{"name": "x"}]),
    _changed(V3, "future", {"must_understand": True}),
  ],
)
def test_what_is_beyond_relayout_is_unsupported(metadata):
  with pytest.raises(UnsupportedError, match=r"params\.kernel"):
    _parse(metadata)


def test_extensions_that_need_no_understanding_pass():
  assert _parse(_changed(V3, "x", {"must_understand": False})).shape == (8, 2)


def test_other_metadata_is_unsupported():
  with pytest.raises(UnsupportedError, match="zarr"):
    zarr_array.parse_array_metadata("a/attributes.json", b"{}")


def test_huge_metadata_is_refused():
  with pytest.raises(CorruptCheckpointError, match="more than array metadata"):
    zarr_array.parse_array_metadata("a/.zarray", b" " * (1 << 21))


def test_byte_order():
  big = {"name": "bytes", "configuration": {"endian": "big"}}
  assert zarr_order.byte_order(_parse(_changed(V2, "dtype", ">f4"))) == "big"
  assert zarr_order.byte_order(_parse(_changed(V3, "codecs", [big]))) == "big"
  inner = _changed(V3, f"{_CONFIGURATION}/codecs", [big])
  assert zarr_order.byte_order(_parse(inner)) == "big"
  assert zarr_order.byte_order(_parse(V2)) == "little"
  assert zarr_order.byte_order(_parse(V3)) == "little"


def test_value_order():
  swap = {"name": "transpose", "configuration": {"order": [1, 0]}}
  keep = {"name": "transpose", "configuration": {"order": [0, 1]}}
  assert zarr_order.is_c_order(_parse(V2))
  assert zarr_order.is_c_order(_parse(V3))
  assert not zarr_order.is_c_order(_parse(_changed(V2, "order", "F")))
  assert zarr_order.is_c_order(_parse(_changed(V3, "codecs", [keep, _BYTES])))
  swapped = _parse(_changed(V3, "codecs", [swap, _BYTES]))
  assert not zarr_order.is_c_order(swapped)
  inner = _changed(V3, f"{_CONFIGURATION}/codecs", [swap, _BYTES])
  assert not zarr_order.is_c_order(_parse(inner))


def test_inner_chunks_behind_a_transposition_are_named_by_the_arrays_axes():
  swap = {"name": "transpose", "configuration": {"order": [1, 0]}}
  sharding = _changed(_SHARDING, "configuration/chunk_shape", [2, 1])
  spec = _parse(_changed(V3, "codecs", [swap, sharding]))
  assert spec.inner_chunk_shape == (1, 2)


def test_nan_is_written_as_json():
  data = json.dumps(_changed(V3, "fill_value", float("nan"))).encode()
  spec = zarr_array.parse_array_metadata("a/zarr.json", data)
  written = json.loads(zarr_array.array_metadata_bytes(spec))
  assert written["fill_value"] == "NaN"
