"""Values of arrays of a few elements: steps, counts, keys.

Decoding happens in Python, without NumPy, so it is for small arrays only.
"""

import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence

from relayout import errors
from relayout.metadata import chunk_codecs
from relayout.metadata.zarr_order import byte_order, is_c_order
from relayout.tree.array_spec import ArraySpec, bits_per_element

MAX_NUM_ELEMENTS = 4096
"""Most elements an array may have to be decoded here."""

_MAX_CHUNK_BYTES = 1 << 20

type ChunkIndex = tuple[int, ...]
type ReadChunk = Callable[[str], bytes | None]
"""Returns the stored bytes under a chunk key, None if there are none."""

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
  "bfloat16": "H",
}


def decode_small_array(
  spec: ArraySpec, read_chunk: ReadChunk, name: str
) -> list[int | float]:
  """Returns the elements of an array in C order.

  Args:
    spec: The array, of at most `MAX_NUM_ELEMENTS` elements.
    read_chunk: Gives what is stored under a chunk key such as `0.1`.
    name: Names the array in messages.

  Raises:
    CorruptCheckpointError: If a chunk can't be decoded.
    UnsupportedError: If the array is too large, or of a data type or codec that
      is not decoded here.
  """
  _check_supported(spec, name)
  stored: dict[ChunkIndex, Sequence[int | float | None] | None] = {}
  fill = _fill_value(spec, name)
  result = []
  for element in itertools.product(*map(range, spec.shape)):
    index = _divide(element, spec.chunk_shape)
    if index not in stored:
      data = read_chunk(chunk_key(spec, index))
      stored[index] = None if data is None else _decode(spec, data, name)
    chunk = stored[index]
    within = _remainder(element, spec.chunk_shape)
    value = None if chunk is None else chunk[_flat(within, spec.chunk_shape)]
    result.append(fill if value is None else value)
  return result


def chunk_key(spec: ArraySpec, index: ChunkIndex) -> str:
  """Returns the store key of the chunk at `index`, below the array's name."""
  parts = [str(i) for i in index]
  if spec.key_style == "v2":
    return spec.key_separator.join(parts) or "0"
  return spec.key_separator.join(["c", *parts])


def _check_supported(spec: ArraySpec, name: str) -> None:
  if spec.num_elements > MAX_NUM_ELEMENTS:
    raise errors.UnsupportedError(
      f"{name}: {list(spec.shape)} is more than the {MAX_NUM_ELEMENTS} elements"
      " that are decoded one by one"
    )
  num_bytes = math.prod(spec.chunk_shape) * bits_per_element(spec.dtype) // 8
  if num_bytes > _MAX_CHUNK_BYTES:
    raise errors.UnsupportedError(
      f"{name}: chunks of {list(spec.chunk_shape)} {spec.dtype} are more than"
      f" the {_MAX_CHUNK_BYTES} bytes that are decoded one by one"
    )
  if spec.dtype not in _STRUCT_CODES:
    raise errors.UnsupportedError(
      f"{name}: values of type {spec.dtype} are not decoded one by one"
    )
  if not is_c_order(spec):
    raise errors.UnsupportedError(
      f"{name}: values in another order than C are not decoded one by one"
    )


def _decode(
  spec: ArraySpec, data: bytes, name: str
) -> Sequence[int | float | None]:
  """Returns the elements of a stored chunk; None stands for the fill value."""
  num_bytes = bits_per_element(spec.dtype) // 8
  parts = chunk_codecs.decode_chunk(spec, data, num_bytes, name)
  inner_shape = spec.inner_chunk_shape
  if inner_shape is None:
    return _unpack(spec, parts[0] or b"")
  result: list[int | float | None] = [None] * math.prod(spec.chunk_shape)
  for first, part in zip(
    _origins(spec.chunk_shape, inner_shape), parts, strict=True
  ):
    if part is None:
      continue
    offsets = itertools.product(*map(range, inner_shape))
    for offset, value in zip(offsets, _unpack(spec, part), strict=True):
      element = tuple(map(sum, zip(first, offset, strict=True)))
      result[_flat(element, spec.chunk_shape)] = value
  return result


def _origins(
  shape: Sequence[int], inner: Sequence[int]
) -> Iterator[tuple[int, ...]]:
  """Yields the first element of each inner chunk, in C order."""
  steps = [range(0, n, k) for n, k in zip(shape, inner, strict=True)]
  return itertools.product(*steps)


def _unpack(spec: ArraySpec, data: bytes) -> Sequence[int | float]:
  """Returns the elements in `data`, whose length is a multiple of theirs."""
  order = ">" if byte_order(spec) == "big" else "<"
  num = len(data) // (bits_per_element(spec.dtype) // 8)
  values = struct.unpack(f"{order}{num}{_STRUCT_CODES[spec.dtype]}", data)
  if spec.dtype == "bfloat16":
    return [_float_of_bfloat16(value) for value in values]
  if spec.dtype == "bool":
    return [int(value) for value in values]
  return values


def _float_of_bfloat16(bits: int) -> float:
  value: float = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
  return value


def _fill_value(spec: ArraySpec, name: str) -> int | float:
  value = spec.raw.get("fill_value")
  if value is None:
    return 0
  is_float = "float" in spec.dtype
  if isinstance(value, str) and is_float:
    return _parse_float(spec, value, name)
  if not isinstance(value, int | float) or (
    not is_float and isinstance(value, float) and not value.is_integer()
  ):
    raise errors.CorruptCheckpointError(
      f"{name}: fill value {str(value)[:80]!r} of type {spec.dtype}"
    )
  return float(value) if is_float else int(value)


def _parse_float(spec: ArraySpec, text: str, name: str) -> float:
  """Returns the float that a fill value spells: NaN, Infinity, or its bits."""
  if text in ("NaN", "Infinity", "-Infinity"):
    return float(text)
  num_bytes = bits_per_element(spec.dtype) // 8
  try:
    data = bytes.fromhex(text.removeprefix("0x"))
    if text.startswith("0x") and len(data) == num_bytes:
      if spec.dtype == "bfloat16":
        return _float_of_bfloat16(int.from_bytes(data, "big"))
      value: float = struct.unpack(f">{_STRUCT_CODES[spec.dtype]}", data)[0]
      return value
  except ValueError:
    pass
  raise errors.CorruptCheckpointError(
    f"{name}: fill value {text[:80]!r} of type {spec.dtype}"
  )


def _divide(element: ChunkIndex, chunk: Sequence[int]) -> ChunkIndex:
  return tuple(i // k for i, k in zip(element, chunk, strict=True))


def _remainder(element: ChunkIndex, chunk: Sequence[int]) -> ChunkIndex:
  return tuple(i % k for i, k in zip(element, chunk, strict=True))


def _flat(element: Sequence[int], shape: Sequence[int]) -> int:
  """Returns the position of `element` in C order."""
  result = 0
  for i, length in zip(element, shape, strict=True):
    result = result * length + i
  return result
