"""Cuts an array into slabs of whole chunks that fit a memory limit."""

import math
from collections.abc import Iterator, Sequence

type Slab = tuple[slice, ...]


def slab_shape(
  shape: Sequence[int], chunk: Sequence[int], itemsize: int, limit: int
) -> tuple[int, ...]:
  """Returns the shape of slabs that consist of whole chunks.

  Args:
    shape: Shape of the array.
    chunk: Shape of its chunks, of the same rank.
    itemsize: Size of an element, bytes.
    limit: Largest size of a slab, bytes; one chunk is taken even if it is
      larger, as no less can be read of it.
  """
  result = [min(n, k) for n, k in zip(shape, chunk, strict=True)]
  for axis in reversed(range(len(shape))):
    num_bytes = max(1, math.prod(result) * itemsize)
    fitting = max(1, limit // num_bytes)
    result[axis] = min(shape[axis], result[axis] * fitting)
    if result[axis] < shape[axis]:
      break
  return tuple(result)


def num_slabs(shape: Sequence[int], step: Sequence[int]) -> int:
  """Returns how many slabs of shape `step` cover an array."""
  return math.prod(_counts(shape, step))


def slabs(shape: Sequence[int], step: Sequence[int]) -> Iterator[Slab]:
  """Yields the slabs of shape `step` that cover an array, in C order.

  None of an array without elements; an array without axes is one slab.
  """
  counts = _counts(shape, step)
  for number in range(math.prod(counts)):
    slab = []
    for axis in reversed(range(len(shape))):
      number, place = divmod(number, counts[axis])
      first = place * step[axis]
      slab.append(slice(first, min(first + step[axis], shape[axis])))
    yield tuple(reversed(slab))


def blocks(shape: Sequence[int], limit: int) -> Iterator[Slab]:
  """Yields blocks of at most `limit` elements that cover an array."""
  return slabs(shape, slab_shape(shape, [1] * len(shape), 1, limit))


def num_elements(slab: Slab) -> int:
  """Returns the number of elements of a slab."""
  return math.prod(axis.stop - axis.start for axis in slab)


def _counts(shape: Sequence[int], step: Sequence[int]) -> tuple[int, ...]:
  return tuple(
    -(-length // max(1, size)) for length, size in zip(shape, step, strict=True)
  )
