"""Chunk shapes for arrays that are rewritten.

A stored chunk is decoded from start to end, once, and the parts of the target
that one stretch of it fills must fit in memory together.  So target chunks
are cut along the axes that vary slowest in the source's memory.
"""

import math
from collections.abc import Sequence

_MIN_UNIT_BYTES = 1 << 20
_MAX_UNIT_BYTES = 1 << 23
_UNITS_IN_MEMORY = 8


def unit_bytes(memory_limit: int) -> int:
  """Returns how many bytes of the target are made at once.

  The same rule as the native core's, `cc/rechunk`.
  """
  share = memory_limit // _UNITS_IN_MEMORY
  return min(max(share, _MIN_UNIT_BYTES), _MAX_UNIT_BYTES)


def slab(
  shape: Sequence[int],
  order: Sequence[int],
  itemsize: int,
  max_num_bytes: int,
) -> tuple[int, ...]:
  """Returns the largest even part of a block that fits in `max_num_bytes`.

  It is cut along the slowest axes, so in memory it is one stretch.

  Args:
    shape: Of the block.
    order: Its axes, slowest first.
    itemsize: Bytes of an element.
    max_num_bytes: Limit; a single element may exceed it.
  """
  result = [1] * len(shape)
  num_bytes = itemsize
  for axis in reversed(order):
    most = max(max_num_bytes // num_bytes, 1)
    result[axis] = _even_part(shape[axis], most)
    num_bytes *= result[axis]
    if result[axis] < shape[axis]:
      break
  return tuple(result)


def _even_part(length: int, most: int) -> int:
  """Returns a length up to `most` that divides `length` well.

  A divisor, unless that would be less than half of what is possible: then
  parts of nearly equal length.
  """
  if length <= most:
    return max(length, 1)
  parts = math.ceil(length / most)
  for number in range(parts, 2 * parts + 1):
    if length % number == 0:
      return length // number
  return math.ceil(length / parts)


def cut(
  chunk_shape: Sequence[int], itemsize: int, max_num_bytes: int | None
) -> tuple[int, ...]:
  """Returns a chunk shape within `chunk_shape` of at most `max_num_bytes`."""
  if max_num_bytes is None:
    return tuple(chunk_shape)
  return slab(chunk_shape, range(len(chunk_shape)), itemsize, max_num_bytes)
