import struct

import pytest
import tensorstore as ts

from relayout.metadata import zarr_array, zarr_scalar


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
  ("dtype", "value"),
  [
    ("int32", -5),
    ("int64", 1 << 40),
    ("uint32", (1 << 32) - 1),
    ("float32", 0.25),
  ],
)
def test_tensorstore_reads_a_new_scalar(dtype, value, zarr_format):
  spec = zarr_scalar.scalar_array(dtype, zarr_format)
  kvstore = ts.KvStore.open("memory://").result()
  kvstore[spec.metadata_key] = zarr_array.array_metadata_bytes(spec)
  chunk_key = "0" if zarr_format == 2 else "c"
  kvstore[chunk_key] = zarr_scalar.encode_scalar(value, dtype)
  driver = "zarr" if zarr_format == 2 else "zarr3"
  store = ts.open({"driver": driver}, kvstore=kvstore, open=True).result()
  assert store.dtype.name == dtype
  assert store.read().result() == value


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_metadata_comes_back(zarr_format):
  spec = zarr_scalar.scalar_array("int32", zarr_format)
  data = zarr_array.array_metadata_bytes(spec)
  key = f"step/{spec.metadata_key}"
  assert zarr_array.parse_array_metadata(key, data) == spec


def test_values_are_little_endian():
  assert zarr_scalar.encode_scalar(1, "int32") == b"\x01\0\0\0"
  assert zarr_scalar.encode_scalar(3, "float32") == struct.pack("<f", 3.0)


@pytest.mark.parametrize(
  ("value", "dtype"),
  [
    (1 << 31, "int32"),
    (-1, "uint32"),
    (1e39, "float32"),
    (0.5, "int32"),
    (1, "bfloat16"),
  ],
)
def test_values_that_do_not_fit_are_refused(value, dtype):
  with pytest.raises(ValueError, match=dtype):
    zarr_scalar.encode_scalar(value, dtype)


def test_other_types_are_refused():
  with pytest.raises(ValueError, match="no scalar of 'float8_e4m3fn'"):
    zarr_scalar.scalar_array("float8_e4m3fn", 2)
