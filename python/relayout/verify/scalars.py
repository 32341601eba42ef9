"""Reads counters with TensorStore, and finds the one that counts updates."""

import dataclasses

from relayout.errors import CorruptCheckpointError, LayoutError
from relayout.verify.oracle import READ_ERRORS, Oracle

_UPDATES = ("gradient_step", "step")
"""Names of the counter, the one that is right if both are there first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scalar:
  """An integer that is stored as an array without axes."""

  name: str
  dtype: str
  value: int


def read_scalar(oracle: Oracle, name: str) -> Scalar:
  """Returns the integer that is stored under `name`.

  Raises:
    CorruptCheckpointError: If it can't be read.
    LayoutError: If it is not a single integer.
  """
  import numpy as np

  array = oracle.open(name)
  label = f"{oracle.directory.name}/{name}"
  if array.shape or not np.issubdtype(array.dtype.numpy_dtype, np.integer):
    raise LayoutError(
      f"{label}: expected one integer, found {array.dtype.name} of shape "
      f"{list(array.shape)}"
    )
  try:
    value = array.read().result()
  except READ_ERRORS as error:
    raise CorruptCheckpointError(
      f"{oracle.directory}: array {name}: {error}"
    ) from error
  return Scalar(name, array.dtype.name, int(value))


def updates_of_source(optimizer: Oracle | None) -> Scalar | None:
  """Returns the counter of optimizer updates of a Tunix step, or None.

  Tunix's `step` counts micro-steps where the optimizer accumulates gradients;
  then `gradient_step` of `MultiSteps` counts updates.
  """
  if optimizer is None:
    return None
  by_counter: dict[str, str] = {}
  for name in optimizer.arrays:
    path = name.removesuffix(".value").split(".")
    if path[-1] == "gradient_step" or path == ["step"]:
      by_counter.setdefault(path[-1], name)
  for counter in _UPDATES:
    if counter in by_counter:
      return read_scalar(optimizer, by_counter[counter])
  return None


def updates_of_target(item: Oracle) -> Scalar | None:
  """Returns the leaf `step` of a MaxText item; None without a usable one."""
  if "step" not in item.arrays:
    return None
  try:
    return read_scalar(item, "step")
  except (LayoutError, CorruptCheckpointError):
    return None
