"""The value that the elements of an absent chunk have."""

import math
from typing import Any

from relayout.metadata.json_value import JsonValue

_MIN_INTEGER = -(1 << 63)
_MAX_INTEGER = (1 << 64) - 1


def check(value: JsonValue, *, may_be_null: bool) -> None:
  """Checks the type of a `fill_value`.

  Raises:
    CorruptCheckpointError: If it is not a number, nor a string or array that
      spells one.
  """
  found = value.value
  if found is None and may_be_null:
    return
  if type(found) is int:
    value.integer(minimum=_MIN_INTEGER, maximum=_MAX_INTEGER)
  elif not isinstance(found, bool | float | str | list):
    value.fail("a number, or a string that spells one")


def spelled(fill_value: Any) -> Any:
  """Returns `fill_value` without the NaN and Infinity that JSON lacks."""
  if isinstance(fill_value, float) and not math.isfinite(fill_value):
    if math.isnan(fill_value):
      return "NaN"
    return "Infinity" if fill_value > 0 else "-Infinity"
  if isinstance(fill_value, list):
    return [spelled(part) for part in fill_value]
  return fill_value
