"""A hash of an array that does not depend on the order it is read in.

Each element is mixed with its index into 128 bits, and all are added up.  It
finds any accidental change; it is no protection against a deliberate one.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relayout.comparison import slabs

if TYPE_CHECKING:
  import numpy as np

_BLOCK = 1 << 15
"""Elements that are mixed at a time, so that they stay in the cache."""

_MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15
_FACTORS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
"""Of MurmurHash3's finalizer."""


class Fingerprint:
  """The hash of an array of which parts are added in any order."""

  def __init__(self, shape: tuple[int, ...]) -> None:
    """Starts the hash of an array of this shape, with nothing added."""
    self._strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    self._sums = [0, 0]

  def add(self, values: "np.ndarray[Any, Any]", start: tuple[int, ...]) -> None:
    """Adds the part of the array at index `start`."""
    import numpy as np

    values = np.asarray(values)
    for block in slabs.blocks(values.shape, _BLOCK):
      part = np.asarray(values[block], order="C")
      at = [
        first + along.start for first, along in zip(start, block, strict=True)
      ]
      self._add(_words(part), _places(part.shape, at, self._strides))

  def hex(self) -> str:
    """Returns the hash of what was added, 32 digits."""
    return "".join(f"{value & _MASK:016x}" for value in self._sums)

  def _add(self, words: Any, places: Any) -> None:
    import numpy as np

    mixed = _mix(places)
    for column in range(words.shape[1]):
      mixed = _mix(mixed ^ words[:, column])
    self._sums[0] += int(mixed.sum(dtype=np.uint64))
    self._sums[1] += int(_mix(mixed).sum(dtype=np.uint64))


def _words(values: "np.ndarray[Any, Any]") -> Any:
  """Returns the bits of each element as rows of 64-bit words."""
  import numpy as np

  size = values.dtype.itemsize
  width = min(size, 8)
  flat = values.reshape(-1).view(np.dtype(f"u{width}"))
  return flat.reshape(-1, size // width)


def _places(
  shape: Sequence[int], start: Sequence[int], strides: Sequence[int]
) -> Any:
  """Returns the index in C order of each element of a part."""
  import numpy as np

  places = np.zeros((), np.uint64)
  for first, length, stride in zip(start, shape, strides, strict=True):
    along = np.arange(first, first + length, dtype=np.uint64)
    places = places[..., None] + along * np.uint64(stride & _MASK)
  return places.reshape(-1)


def _mix(values: Any) -> Any:
  """Spreads each bit of 64-bit words over all of the word."""
  import numpy as np

  shift = np.uint64(33)
  values = values + np.uint64(_ODD)
  for factor in _FACTORS:
    values ^= values >> shift
    values *= np.uint64(factor)
  values ^= values >> shift
  return values
