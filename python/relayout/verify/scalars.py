"""Reads counters and counts zeros, with TensorStore."""

import dataclasses
from typing import Any

from relayout.comparison import slabs
from relayout.comparison.oracle import READ_ERRORS, chunk_shape
from relayout.comparison.side import Side
from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  UnsupportedError,
)
from relayout.layouts.state import StoredLeaf

_MOST_SLABS = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Scalar:
  """An integer that is stored as an array without axes."""

  dtype: str
  value: int


def read_scalar(stored: StoredLeaf, side: Side) -> Scalar:
  """Returns the integer that is stored.

  Raises:
    CorruptCheckpointError: If it can't be read.
    LayoutError: If it is not a single integer.
  """
  import numpy as np

  array = side.open(stored)
  if array.shape or not np.issubdtype(array.dtype.numpy_dtype, np.integer):
    raise LayoutError(
      f"{stored.label}: expected one integer, found {array.dtype.name} of "
      f"shape {list(array.shape)}"
    )
  return Scalar(array.dtype.name, int(_read(array, stored)))


def read_small(stored: StoredLeaf, side: Side) -> Any:
  """Returns the values of a small array.

  Raises:
    CorruptCheckpointError: If it can't be read.
    UnsupportedError: If it is not small.
  """
  array = side.open(stored)
  if array.size > _MOST_SLABS:
    raise UnsupportedError(
      f"{stored.label}: {array.size} elements, where a few are expected"
    )
  return _read(array, stored)


def count_nonzero(stored: StoredLeaf, side: Side, memory_limit: int) -> int:
  """Returns how many elements are not zero; -0.0 is, NaN is not.

  Args:
    stored: The array.
    side: Where it is.
    memory_limit: Bytes to hold at once, about.

  Raises:
    CorruptCheckpointError: If the array can't be read.
    UnsupportedError: If it claims more chunks than can be read.
  """
  import numpy as np

  array = side.open(stored)
  itemsize = array.dtype.numpy_dtype.itemsize
  step = slabs.slab_shape(
    array.shape, chunk_shape(array), itemsize, memory_limit // 2
  )
  if slabs.num_slabs(array.shape, step) > _MOST_SLABS:
    raise UnsupportedError(
      f"{stored.label}: shape {list(array.shape)} takes too many reads. Is it "
      "damaged?"
    )
  return sum(
    int(np.count_nonzero(_read(array[slab], stored)))
    for slab in slabs.slabs(array.shape, step)
  )


def _read(array: Any, stored: StoredLeaf) -> Any:
  try:
    return array.read().result()
  except READ_ERRORS as error:
    raise CorruptCheckpointError(
      f"{stored.item.directory}: array {stored.leaf.name}: {error}"
    ) from error
