import ml_dtypes
import numpy as np
import pytest

from relayout.tree.array_spec import ArraySpec, bits_per_element


def _spec(shape, chunk_shape, dtype="float32", zarr_format=2):
  return ArraySpec(
    shape=shape,
    dtype=dtype,
    chunk_shape=chunk_shape,
    inner_chunk_shape=None,
    zarr_format=zarr_format,
    key_style="v2",
    key_separator=".",
    raw={},
  )


@pytest.mark.parametrize(
  "dtype",
  [
    *("bool", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
  ],
)
def test_width_is_that_of_numpy(dtype):
  assert bits_per_element(dtype) == 8 * np.dtype(dtype).itemsize


@pytest.mark.parametrize(
  "dtype",
  [
    *("bfloat16", "int2", "int4", "uint2", "uint4"),
    *("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
  ],
)
def test_width_is_that_of_ml_dtypes(dtype):
  itemsize = np.dtype(getattr(ml_dtypes, dtype)).itemsize
  assert bits_per_element(dtype) == 8 * itemsize


@pytest.mark.parametrize("dtype", ["", "string", "float_32x", "_8"])
def test_name_without_width_is_refused(dtype):
  with pytest.raises(ValueError, match="no known width"):
    bits_per_element(dtype)


def test_sizes():
  spec = _spec((5, 4), (2, 4), "int4")
  assert spec.rank == 2
  assert spec.num_elements == 20
  assert spec.num_bytes == 20
  assert spec.grid == (3, 1)


def test_scalar_has_one_chunk_and_empty_array_none():
  assert _spec((), ()).num_elements == 1
  assert _spec((), ()).grid == ()
  assert _spec((0, 4), (1, 4)).num_bytes == 0
  assert _spec((0, 4), (1, 4)).grid == (0, 1)


def test_metadata_key():
  assert _spec((), ()).metadata_key == ".zarray"
  assert _spec((), (), zarr_format=3).metadata_key == "zarr.json"


def test_specs_are_hashable_though_raw_is_not():
  assert len({_spec((1,), (1,)), _spec((1,), (1,)), _spec((2,), (1,))}) == 2
