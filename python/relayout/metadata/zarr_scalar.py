"""New arrays of a single value, such as a step or a count."""

import struct
from typing import Any, Literal

from relayout.metadata.zarr_new import Storage, new_array
from relayout.tree.array_spec import ArraySpec

_STRUCT_CODES = {
  "int32": "<i",
  "int64": "<q",
  "uint32": "<I",
  "float32": "<f",
}


def scalar_array(dtype: str, zarr_format: Literal[2, 3]) -> ArraySpec:
  """Returns the spec of a scalar whose one chunk is the value's own bytes.

  Its chunk key is `0` in zarr v2 and `c` in v3; its chunk is what
  `encode_scalar` returns.

  Raises:
    ValueError: If `dtype` is none that `encode_scalar` takes.
  """
  _struct_code(dtype)
  fill: Any = 0
  if zarr_format == 2:
    fill = None
  elif dtype == "float32":
    fill = 0.0
  return new_array((), dtype, (), Storage(zarr_format, fill_value=fill))


def encode_scalar(value: float, dtype: str) -> bytes:
  """Returns the chunk of a `scalar_array` that holds `value`.

  Raises:
    ValueError: If `dtype` can't hold `value`, or is not one of int32, int64,
      uint32 and float32.
  """
  code = _struct_code(dtype)
  try:
    return struct.pack(code, value)
  except (struct.error, OverflowError) as error:
    raise ValueError(f"{value!r} is no value of {dtype}") from error


def _struct_code(dtype: str) -> str:
  if dtype not in _STRUCT_CODES:
    raise ValueError(
      f"no scalar of {dtype!r}; there are {', '.join(_STRUCT_CODES)}"
    )
  return _STRUCT_CODES[dtype]
