"""Where two arrays differ, and how much.

Of one data type, bits decide: NaN equals NaN, and -0.0 differs from 0.0.  Of
two, values do, as float64 has them.
"""

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from relayout.comparison import slabs

if TYPE_CHECKING:
  import numpy as np

_BLOCK = 1 << 20
"""Elements that are compared at a time, to bound the memory it takes."""

type Index = tuple[int, ...]
type Array = "np.ndarray[Any, Any]"


@dataclasses.dataclass(frozen=True, slots=True)
class Extreme:
  """The largest difference.

  Attributes:
    difference: Its size; infinite where only one value is finite.
    index: Where it is.
    a: The first side's value there, as text.
    b: The second side's.
  """

  difference: float
  index: Index
  a: str
  b: str


@dataclasses.dataclass(frozen=True, slots=True)
class Mismatch:
  """Where two arrays differ.

  Attributes:
    count: Number of elements that differ.
    first: The first of them in C order; its difference is the absolute one.
    largest: Where the absolute difference is largest.
    largest_relative: Where the difference relative to the larger of the two
      magnitudes is largest; 2 at most, for finite values.
  """

  count: int
  first: Extreme
  largest: Extreme
  largest_relative: Extreme

  def at(self, start: Index) -> "Mismatch":
    """Returns the mismatch of an array of which this is the part at `start`."""
    return Mismatch(
      self.count,
      *(
        dataclasses.replace(
          found,
          index=tuple(i + j for i, j in zip(found.index, start, strict=True)),
        )
        for found in (self.first, self.largest, self.largest_relative)
      ),
    )


def mismatch(a: "Array", b: "Array") -> Mismatch | None:
  """Returns where two arrays of one shape differ, or None."""
  import numpy as np

  a, b = np.asarray(a), np.asarray(b)
  total = None
  for block in slabs.blocks(a.shape, _BLOCK):
    found = _mismatch(_contiguous(a[block]), _contiguous(b[block]))
    if found is not None:
      total = merge(total, found.at(tuple(along.start for along in block)))
  return total


def _contiguous(values: "Array") -> "Array":
  """Returns values in C order; unlike NumPy's function, keeps scalars."""
  import numpy as np

  return np.asarray(values, order="C")


def _mismatch(a: "Array", b: "Array") -> Mismatch | None:
  import numpy as np

  differs = _differ(a, b)
  if differs is None:
    return None
  places = np.flatnonzero(differs)
  return _measure(a.reshape(-1)[places], b.reshape(-1)[places], places, a.shape)


def merge(one: Mismatch | None, other: Mismatch | None) -> Mismatch | None:
  """Returns the mismatch of both parts of an array together."""
  if one is None or other is None:
    return one or other
  return Mismatch(
    one.count + other.count,
    min(one.first, other.first, key=lambda found: found.index),
    _larger(one.largest, other.largest),
    _larger(one.largest_relative, other.largest_relative),
  )


def _larger(one: Extreme, other: Extreme) -> Extreme:
  return min(one, other, key=lambda found: (-found.difference, found.index))


def _differ(a: "Array", b: "Array") -> "Array | None":
  """Returns which elements differ, in C order, or None if none do."""
  import numpy as np

  if a.dtype == b.dtype:
    if np.array_equal(_words(a), _words(b)):
      return None
    size = a.dtype.itemsize
    one, other = (x.reshape(-1).view(np.uint8) for x in (a, b))
    unlike = one.reshape(-1, size) != other.reshape(-1, size)
    return np.asarray(unlike.any(axis=1))
  one, other = (_widen(values).reshape(-1) for values in (a, b))
  same = (one == other) | (np.isnan(one) & np.isnan(other))
  return None if same.all() else ~same


def _words(array: "Array") -> "Array":
  """Returns the bytes of a contiguous array as words, the widest that fit."""
  import numpy as np

  flat = array.reshape(-1).view(np.uint8)
  return flat.view(np.uint64) if flat.size % 8 == 0 else flat


def _widen(values: "Array") -> "Array":
  """Returns values in a type in which differences are exact or nearly so."""
  import numpy as np

  if values.dtype.kind == "c":
    return values.astype(np.complex128)
  if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
    return values.astype(np.longdouble)
  return values.astype(np.float64)


def _measure(
  a: "Array", b: "Array", places: "Array", shape: tuple[int, ...]
) -> Mismatch:
  """Returns the mismatch of elements that differ, given their places."""
  import numpy as np

  one, other = _widen(a), _widen(b)
  with np.errstate(all="ignore"):
    absolute = np.abs(one - other).astype(np.float64)
    scale = np.maximum(np.abs(one), np.abs(other)).astype(np.float64)
    relative = absolute / scale
  both_nan = np.isnan(one) & np.isnan(other)
  for found in (absolute, relative):
    found[np.isnan(found)] = math.inf
    found[both_nan] = 0
  relative[absolute == 0] = 0
  relative[np.isinf(absolute)] = math.inf

  def extreme(at: int, sizes: "Array") -> Extreme:
    index = tuple(int(i) for i in np.unravel_index(places[at], shape))
    return Extreme(float(sizes[at]), index, *_texts(a[at], b[at]))

  return Mismatch(
    len(places),
    extreme(0, absolute),
    extreme(int(absolute.argmax()), absolute),
    extreme(int(relative.argmax()), relative),
  )


def _texts(a: Any, b: Any) -> tuple[str, str]:
  """Returns two elements as text; with their bits if that is what differs."""
  one, other = str(a), str(b)
  if one != other or a.dtype != b.dtype:
    return one, other
  return _with_bytes(one, a), _with_bytes(other, b)


def _with_bytes(text: str, value: Any) -> str:
  return f"{text} (bytes {value.tobytes().hex()})"
