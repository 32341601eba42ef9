"""Counts the elements of a stored array that are not zero."""

from relayout.errors import CorruptCheckpointError
from relayout.verify import slabs
from relayout.verify.oracle import READ_ERRORS, Oracle, chunk_shape


def count_nonzero(oracle: Oracle, name: str, memory_limit: int) -> int:
  """Returns how many elements are not zero; -0.0 is, NaN is not.

  Args:
    oracle: The store.
    name: Name of the array.
    memory_limit: Bytes to hold at once, about.

  Raises:
    CorruptCheckpointError: If the array can't be read.
  """
  import numpy as np

  array = oracle.open(name)
  step = slabs.slab_shape(
    array.shape,
    chunk_shape(array),
    array.dtype.numpy_dtype.itemsize,
    memory_limit // 2,
  )
  count = 0
  try:
    for slab in slabs.slabs(array.shape, step):
      count += int(np.count_nonzero(array[slab].read().result()))
  except READ_ERRORS as error:
    raise CorruptCheckpointError(
      f"{oracle.directory}: array {name}: {error}"
    ) from error
  return count
