"""New arrays, as TensorStore sees them, and their fill values."""

import math

import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts

from relayout.errors import UnsupportedError
from relayout.metadata.zarr_array import (
  array_metadata_bytes,
  parse_array_metadata,
)
from relayout.metadata.zarr_new import (
  Storage,
  fill_bytes,
  new_array,
  zeros_chunk,
)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("level", [None, 0, 5])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint32", "int4"])
def test_tensorstore_reads_and_writes_it(tmp_path, zarr_format, level, dtype):
  spec = new_array((5, 3), dtype, (2, 3), Storage(zarr_format, level))
  (tmp_path / spec.metadata_key).write_bytes(array_metadata_bytes(spec))
  driver = "zarr" if zarr_format == 2 else "zarr3"
  store = ts.open(
    {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
  ).result()
  assert store.dtype.name == dtype
  values = np.arange(15).reshape(5, 3).astype(store.dtype.numpy_dtype)
  store.write(values).result()
  assert store.read().result().tobytes() == values.tobytes()
  assert store.chunk_layout.write_chunk.shape == (2, 3)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_it_is_what_its_metadata_says(zarr_format):
  spec = new_array((4, 0), "float32", (2, 1), Storage(zarr_format, 3, 0.0))
  data = array_metadata_bytes(spec)
  assert parse_array_metadata(spec.metadata_key, data) == spec


@pytest.mark.parametrize(
  ("dtype", "value", "expected"),
  [
    ("float32", None, np.float32(0)),
    ("float32", 0, np.float32(0)),
    ("float32", 1.5, np.float32(1.5)),
    ("float32", -0.0, np.float32(-0.0)),
    ("float32", "NaN", np.float32(math.nan)),
    ("float32", "-Infinity", np.float32(-math.inf)),
    ("float32", "0x3f800000", np.float32(1)),
    ("bfloat16", 1.5, ml_dtypes.bfloat16(1.5)),
    ("bfloat16", "Infinity", ml_dtypes.bfloat16(math.inf)),
    ("float16", 2, np.float16(2)),
    ("int8", -1, np.int8(-1)),
    ("uint64", 2**64 - 1, np.uint64(2**64 - 1)),
    ("bool", True, np.bool_(True)),
    ("int4", 0, np.int8(0)),
  ],
)
def test_fill_bytes(dtype, value, expected):
  spec = new_array((1,), dtype, (1,), Storage(3, fill_value=value))
  assert fill_bytes(spec, "w") == expected.tobytes()


@pytest.mark.parametrize(
  ("dtype", "value"),
  [
    ("bfloat16", 1.001),
    ("float8_e4m3fn", 1.0),
    ("int8", 300),
    ("float32", "0x00"),
    ("float32", "one"),
    ("uint8", [1]),
  ],
)
def test_a_fill_value_that_is_not_understood_is_refused(dtype, value):
  spec = new_array((1,), dtype, (1,), Storage(3, fill_value=value))
  with pytest.raises(UnsupportedError, match=r"^w: the fill value"):
    fill_bytes(spec, "w")


@pytest.mark.parametrize("num", [0, 1, 2**15 - 1, 2**15, 2**15 + 1, 10**6])
def test_tensorstore_reads_a_chunk_of_zeros(tmp_path, num):
  spec = new_array((num,), "float32", (max(num, 1),), Storage(2, 0, None))
  (tmp_path / ".zarray").write_bytes(array_metadata_bytes(spec))
  data = zeros_chunk(4 * num)
  assert len(data) <= 18 + 4 * (4 * num // 2**17 + 1)
  (tmp_path / "0").write_bytes(data)
  store = ts.open(
    {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
  ).result()
  values = store.read().result()
  assert values.tobytes() == bytes(4 * num)
