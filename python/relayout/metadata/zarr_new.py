"""Metadata of arrays whose chunks are written anew."""

import dataclasses
import struct
from typing import Any, Literal

from relayout import errors
from relayout.metadata import zarr_dtype
from relayout.tree.array_spec import ArraySpec, bits_per_element

_STRUCT_CODES = {
  "bool": "?",
  "int8": "b",
  "int16": "h",
  "int32": "i",
  "int64": "q",
  "uint8": "B",
  "uint16": "H",
  "uint32": "I",
  "uint64": "Q",
  "float16": "e",
  "float32": "f",
  "float64": "d",
}
_NO_ARRAY = {"v2": ".", "default": "/"}


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
  """How an array's chunks are stored.

  Attributes:
    zarr_format: 2 or 3.
    zstd_level: Level of compression, or None for none.
    fill_value: As in the metadata, for elements of absent chunks.
  """

  zarr_format: Literal[2, 3]
  zstd_level: int | None = None
  fill_value: Any = 0


def new_array(
  shape: tuple[int, ...],
  dtype: str,
  chunk_shape: tuple[int, ...],
  storage: Storage,
) -> ArraySpec:
  """Returns the spec of an array in C order, little endian.

  Raises:
    ValueError: If `dtype` is no data type of a zarr array.
  """
  form = _raw_v2 if storage.zarr_format == 2 else _raw_v3
  style: Literal["v2", "default"] = (
    "v2" if storage.zarr_format == 2 else "default"
  )
  return ArraySpec(
    shape=shape,
    dtype=dtype,
    chunk_shape=chunk_shape,
    inner_chunk_shape=None,
    zarr_format=storage.zarr_format,
    key_style=style,
    key_separator=_NO_ARRAY[style],
    raw=form(shape, dtype, chunk_shape, storage),
  )


def _raw_v2(
  shape: tuple[int, ...],
  dtype: str,
  chunk_shape: tuple[int, ...],
  storage: Storage,
) -> dict[str, Any]:
  level = storage.zstd_level
  return {
    "chunks": list(chunk_shape),
    "compressor": None if level is None else {"id": "zstd", "level": level},
    "dimension_separator": ".",
    "dtype": zarr_dtype.format_v2(dtype),
    "fill_value": storage.fill_value,
    "filters": None,
    "order": "C",
    "shape": list(shape),
    "zarr_format": 2,
  }


def _raw_v3(
  shape: tuple[int, ...],
  dtype: str,
  chunk_shape: tuple[int, ...],
  storage: Storage,
) -> dict[str, Any]:
  zarr_dtype.format_v2(dtype)  # refuses what is no type of numbers
  codecs: list[dict[str, Any]] = [_bytes_codec(dtype)]
  if storage.zstd_level is not None:
    configuration = {"level": storage.zstd_level, "checksum": False}
    codecs.append({"name": "zstd", "configuration": configuration})
  grid = {"chunk_shape": list(chunk_shape)}
  return {
    "chunk_grid": {"name": "regular", "configuration": grid},
    "chunk_key_encoding": {"name": "default"},
    "codecs": codecs,
    "data_type": dtype,
    "fill_value": storage.fill_value,
    "node_type": "array",
    "shape": list(shape),
    "zarr_format": 3,
  }


def _bytes_codec(dtype: str) -> dict[str, Any]:
  if bits_per_element(dtype) == 8:
    return {"name": "bytes"}
  return {"name": "bytes", "configuration": {"endian": "little"}}


_MAX_BLOCK_BYTES = 1 << 17


def zeros_chunk(num_bytes: int) -> bytes:
  """Returns a chunk of zeros, compressed with zstd.

  A frame of run-length blocks, RFC 8878 sections 3.1.1.1 and 3.1.1.2: of each
  128 KiB of zeros four bytes are stored.

  Args:
    num_bytes: Size of the values.
  """
  magic, descriptor, window = b"\x28\xb5\x2f\xfd", b"\xc0", b"\x38"
  parts = [magic, descriptor, window, num_bytes.to_bytes(8, "little")]
  sizes = [_MAX_BLOCK_BYTES] * (num_bytes // _MAX_BLOCK_BYTES)
  sizes.append(num_bytes % _MAX_BLOCK_BYTES)
  for number, size in enumerate(sizes, start=1):
    header = (number == len(sizes)) | _RUN_LENGTH << 1 | size << 3
    parts.append(header.to_bytes(3, "little") + b"\0")
  return b"".join(parts)


_RUN_LENGTH = 1
"""Block type of one byte that is repeated."""


def fill_bytes(spec: ArraySpec, name: str) -> bytes:
  """Returns one element of an absent chunk, little endian.

  Args:
    spec: The array.
    name: Names it in messages.

  Raises:
    UnsupportedError: If the fill value is spelled in a way that is not
      understood, or its type is not.
  """
  value = spec.raw.get("fill_value")
  num_bytes = bits_per_element(spec.dtype) // 8
  if _is_zero(value):
    return bytes(num_bytes)
  try:
    return _encode(value, spec.dtype, num_bytes)
  except (
    struct.error,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
  ) as error:
    raise errors.UnsupportedError(
      f"{name}: the fill value {str(value)[:80]} of type {spec.dtype} is not "
      "understood, and the array must be rewritten"
    ) from error


def _is_zero(value: Any) -> bool:
  """Whether all bits of a fill value are zero, as those of -0.0 are not."""
  if value is None or value == [0, 0]:
    return True
  return value == 0 and not str(value).startswith("-")


def _encode(value: Any, dtype: str, num_bytes: int) -> bytes:
  if isinstance(value, str) and value.startswith("0x"):
    data = bytes.fromhex(value[2:])
    if len(data) != num_bytes:
      raise ValueError(value)
    return data[::-1]
  number = float(value) if "float" in dtype else value
  if dtype == "bfloat16":
    data = struct.pack("<f", number)
    if data[:2] != b"\0\0":
      raise ValueError(value)
    return data[2:]
  return struct.pack("<" + _STRUCT_CODES[dtype], number)
