"""Compares arrays by their bits: NaN equals NaN, and -0.0 differs from 0.0."""

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  import numpy as np

type Index = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Mismatch:
  """Where two arrays differ.

  Attributes:
    count: Number of elements that differ.
    first: Index of the first of them in C order.
    source_value: The source's element there, as text.
    target_value: The target's.
  """

  count: int
  first: Index
  source_value: str
  target_value: str


def mismatch(
  source: "np.ndarray[Any, Any]", target: "np.ndarray[Any, Any]"
) -> Mismatch | None:
  """Returns where two arrays of one shape and type differ, or None."""
  import numpy as np

  source, target = (np.asarray(x, order="C") for x in (source, target))
  if np.array_equal(_words(source), _words(target)):
    return None
  differs = _differs(source, target)
  first = tuple(
    int(i) for i in np.unravel_index(differs.argmax(), target.shape)
  )
  texts = _texts(source[first], target[first])
  return Mismatch(int(np.count_nonzero(differs)), first, *texts)


def merge(one: Mismatch | None, other: Mismatch | None) -> Mismatch | None:
  """Returns the mismatch of both parts of an array together."""
  if one is None or other is None:
    return one or other
  first = min(one, other, key=lambda found: found.first)
  return dataclasses.replace(first, count=one.count + other.count)


def _words(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
  """Returns the bytes of a contiguous array as words, the widest that fit."""
  import numpy as np

  flat = array.reshape(-1).view(np.uint8)
  return flat.view(np.uint64) if flat.size % 8 == 0 else flat


def _differs(
  source: "np.ndarray[Any, Any]", target: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
  """Returns which elements differ, in C order."""
  import numpy as np

  size = target.dtype.itemsize
  one, other = (x.reshape(-1).view(np.uint8) for x in (source, target))
  differs = one.reshape(-1, size) != other.reshape(-1, size)
  return np.asarray(differs.any(axis=1))


def _texts(source: Any, target: Any) -> tuple[str, str]:
  """Returns two elements as text; with their bits if that is what differs."""
  one, other = str(source), str(target)
  if one != other:
    return one, other
  return tuple(  # type: ignore[return-value]
    f"{text} (bytes {value.tobytes().hex()})"
    for text, value in ((one, source), (other, target))
  )
