"""Checks of lengths and separators that both versions of zarr share."""

import math

from relayout.metadata.json_value import JsonValue
from relayout.tree.array_spec import bits_per_element

_MAX_RANK = 32
_MAX_LENGTH = (1 << 62) - 1
_MAX_NUM_BYTES = (1 << 62) - 1


def lengths(value: JsonValue) -> tuple[int, ...]:
  """Returns the shape that `value` spells; a length may be 0."""
  shape = value.integers(minimum=0, maximum=_MAX_LENGTH)
  if len(shape) > _MAX_RANK:
    value.fail(f"at most {_MAX_RANK} axes")
  return shape


def chunk_lengths(value: JsonValue, shape: tuple[int, ...]) -> tuple[int, ...]:
  """Returns the chunk shape that `value` spells, for an array of `shape`."""
  chunk_shape = value.integers(minimum=1, maximum=_MAX_LENGTH)
  if len(chunk_shape) != len(shape):
    value.fail(f"a chunk shape of rank {len(shape)}, as the array's shape")
  return chunk_shape


def check_num_bytes(
  metadata: JsonValue, dtype: str, *shapes: tuple[int, ...]
) -> None:
  """Refuses arrays and chunks of more bytes than any file can have."""
  for shape in shapes:
    if math.prod(shape) * bits_per_element(dtype) > _MAX_NUM_BYTES * 8:
      metadata.fail(
        f"fewer than 2**62 bytes, not those of {list(shape)} {dtype}, in"
      )


def separator(parent: JsonValue, key: str, default: str) -> str:
  """Returns the chunk key separator in member `key`, if there is one."""
  value = parent.get(key)
  if value is None:
    return default
  if value.text() not in (".", "/"):
    value.fail("'.' or '/'")
  return value.text()
