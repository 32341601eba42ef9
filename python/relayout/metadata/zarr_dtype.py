"""Names of data types in array metadata.

zarr v2 spells NumPy's type strings (`<f4`) and, for types that NumPy lacks, the
names that ml_dtypes gives them, as TensorStore writes; zarr v3 spells names.
"""

from typing import Literal

from relayout import errors

type ByteOrder = Literal["<", ">", "|"]
"""Little endian, big endian, or not applicable, as NumPy writes it."""

ML_DTYPES = frozenset(
  {
    "bfloat16",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int1",
    "int2",
    "int4",
    "uint1",
    "uint2",
    "uint4",
  }
)
"""Types beyond NumPy's; names are those of ml_dtypes."""

_NUMPY = {
  "bool": "b1",
  "int8": "i1",
  "int16": "i2",
  "int32": "i4",
  "int64": "i8",
  "uint8": "u1",
  "uint16": "u2",
  "uint32": "u4",
  "uint64": "u8",
  "float16": "f2",
  "float32": "f4",
  "float64": "f8",
  "complex64": "c8",
  "complex128": "c16",
}
_NAME_OF_CODE = {code: name for name, code in _NUMPY.items()}


def parse_v2(text: str, where: str) -> tuple[str, ByteOrder]:
  """Returns the name and byte order of a zarr v2 `dtype`.

  Raises:
    UnsupportedError: If the type holds no numbers: text, dates, raw bytes.
  """
  if text in ML_DTYPES:
    return text, "<" if text == "bfloat16" else "|"
  order, code = text[:1], text[1:]
  name = _NAME_OF_CODE.get(code)
  if name is None or order not in ("<", ">", "|"):
    raise errors.UnsupportedError(
      f"{where}: data type {text[:40]!r} is not a number type that relayout"
      " knows; leave this array out"
    )
  if code[1:] == "1":
    return name, "|"
  if order == "|":
    raise errors.CorruptCheckpointError(
      f"{where}: data type {text!r} has no byte order"
    )
  return name, ">" if order == ">" else "<"


def parse_v3(text: str, where: str) -> str:
  """Returns the name of a zarr v3 `data_type`.

  Raises:
    UnsupportedError: If the type is not one of numbers.
  """
  if text in ML_DTYPES or text in _NUMPY:
    return text
  raise errors.UnsupportedError(
    f"{where}: data type {text[:40]!r} is not a number type that relayout"
    " knows; leave this array out"
  )


def format_v2(dtype: str) -> str:
  """Returns the zarr v2 `dtype` of little-endian `dtype`.

  Raises:
    ValueError: If there is no such type.
  """
  if dtype in ML_DTYPES:
    return dtype
  code = _NUMPY.get(dtype)
  if code is None:
    raise ValueError(f"{dtype!r} is no data type of a zarr array")
  return ("|" if code[1:] == "1" else "<") + code
