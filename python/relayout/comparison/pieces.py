"""Reads two sides in corresponding pieces, ahead, under a memory limit."""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.comparison import slabs
from relayout.comparison.joints import Couple, Joint, Pair
from relayout.comparison.leaves import Pins
from relayout.comparison.oracle import READ_ERRORS, chunk_shape
from relayout.comparison.slabs import Slab
from relayout.errors import CorruptCheckpointError, UnsupportedError
from relayout.layouts.state import StoredLeaf

if TYPE_CHECKING:
  import tensorstore as ts

type Open = Callable[[StoredLeaf], "ts.TensorStore"]
"""Opens the array of a leaf; CorruptCheckpointError if it can't."""

_SLABS_IN_FLIGHT = 4
_COPIES_PER_SLAB = 6
"""Of both sides the values, and the chunks they are from, before and after
decoding."""

_MOST_SLABS = 1 << 20
"""Reads for one array, beyond the number of its chunks."""


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
  """Corresponding values of one leaf on both sides.

  Attributes:
    joint: What is compared.
    pair: Which leaf.
    a: Values of the first side.
    b: Values of the second side, of the same shape.
    start: Index of the first of them in the leaf.
  """

  joint: Joint
  pair: Pair
  a: Any
  b: Any
  start: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Unreadable:
  """An array whose values can't be read.

  Attributes:
    joint: What is compared.
    stored: The array.
    reason: What TensorStore says.
  """

  joint: Joint
  stored: StoredLeaf
  reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class End:
  """All pieces of a joint were read."""

  joint: Joint


def read_pieces(
  joints: Iterable[Joint], open_array: Open, memory_limit: int
) -> Iterator[Piece | Unreadable | End]:
  """Reads arrays in order, some pieces ahead.

  Args:
    joints: What to compare; parts of equal shape.
    open_array: Opens the array of a leaf.
    memory_limit: Bytes to hold at once, about; a single chunk is read even if
      it is larger.

  Yields:
    The pieces of each joint, in no particular order, and its end.

  Raises:
    UnsupportedError: If an array claims more chunks than can be read.
  """
  for unit in _read_ahead(
    _units(joints, open_array, memory_limit), memory_limit
  ):
    yield from unit.finish()


@dataclasses.dataclass(frozen=True, slots=True)
class _Opened:
  joint: Joint
  wide: "ts.TensorStore"
  narrow: tuple["ts.TensorStore", ...]

  def step(self, limit: int) -> tuple[int, ...]:
    """Returns the shape of the slabs of the wide array that are read."""
    step = slabs.slab_shape(
      self.wide.shape,
      self._chunk_shape(),
      int(self.wide.dtype.numpy_dtype.itemsize),
      limit,
    )
    count = slabs.num_slabs(self.wide.shape, step)
    stored = self.joint.wide.leaf.num_chunks
    if count > _MOST_SLABS + stored:
      raise UnsupportedError(
        f"{self.joint.wide.item.directory}: {self.joint.wide.leaf.name} of "
        f"shape {list(self.wide.shape)} takes {count} reads. Is it damaged?"
      )
    return step

  def _chunk_shape(self) -> tuple[int, ...]:
    """Returns a shape of whole chunks, of the wide array and of others."""
    result = list(chunk_shape(self.wide))
    for couple, array in zip(self.joint.couples, self.narrow, strict=True):
      other = chunk_shape(array)
      for axis, narrow_axis in zip(
        _free(len(result), couple.wide_pins), couple.axes, strict=True
      ):
        result[axis] = max(result[axis], other[narrow_axis])
    return tuple(result)


class _Unit:
  """A slab of a joint, to be read at once; or what there is to say of it."""

  def __init__(
    self,
    joint: Joint,
    opened: _Opened | None = None,
    slab: Slab | None = None,
    problem: Unreadable | None = None,
    *,
    is_last: bool = False,
  ) -> None:
    self._joint, self._opened, self._slab = joint, opened, slab
    self._problem, self._is_last = problem, is_last
    self._wide: Any = None
    self._narrow: list[tuple[Couple, Any]] = []

  @property
  def num_bytes(self) -> int:
    """Memory that reading takes, bytes."""
    if self._opened is None or self._slab is None:
      return 0
    itemsize = int(self._opened.wide.dtype.numpy_dtype.itemsize)
    return slabs.num_elements(self._slab) * itemsize * _COPIES_PER_SLAB

  def start(self) -> None:
    """Starts to read."""
    if self._opened is None or self._slab is None:
      return
    for couple, array in zip(
      self._joint.couples, self._opened.narrow, strict=True
    ):
      if _is_within(couple.wide_pins, self._slab):
        part = array[_narrow_index(couple, self._slab)]
        self._narrow.append((couple, part.read()))
    if self._narrow:
      self._wide = self._opened.wide[self._slab].read()

  def finish(self) -> Iterator[Piece | Unreadable | End]:
    """Waits for the values and yields them."""
    if self._problem is not None:
      yield self._problem
    if self._wide is not None:
      yield from self._pieces()
    self._wide, self._narrow = None, []
    if self._is_last:
      yield End(self._joint)

  def _pieces(self) -> Iterator[Piece | Unreadable]:
    joint, slab = self._joint, self._slab
    assert slab is not None
    wide = _await(joint, joint.wide, self._wide)
    if isinstance(wide, Unreadable):
      yield wide
      return
    for couple, read in self._narrow:
      narrow = _await(joint, couple.narrow, read)
      if isinstance(narrow, Unreadable):
        yield narrow
        continue
      yield from _split(joint, couple, slab, wide, narrow)


def _split(
  joint: Joint, couple: Couple, slab: Slab, wide: Any, narrow: Any
) -> Iterator[Piece]:
  """Yields the leaves of a couple, of which a slab was read."""
  narrow = narrow.transpose(_order(couple))
  for pair in couple.pairs:
    pins = joint.wide_part(pair).pins
    if not _is_within(pins, slab):
      continue
    part = wide[_index(pins, slab)]
    other = narrow if couple.wide_pins else narrow[_index(pins, slab)]
    a, b = (part, other) if joint.wide_is_a else (other, part)
    start = tuple(slab[axis].start for axis in _free(len(slab), pins))
    yield Piece(joint, pair, a, b, start)


def _units(
  joints: Iterable[Joint], open_array: Open, memory_limit: int
) -> Iterator[_Unit]:
  limit = memory_limit // (_SLABS_IN_FLIGHT * _COPIES_PER_SLAB)
  for joint in joints:
    opened = _open(joint, open_array)
    if isinstance(opened, Unreadable):
      yield _Unit(joint, problem=opened, is_last=True)
      continue
    step = opened.step(limit)
    for slab in slabs.slabs(opened.wide.shape, step):
      yield _Unit(joint, opened, slab)
    yield _Unit(joint, is_last=True)


def _open(joint: Joint, open_array: Open) -> _Opened | Unreadable:
  arrays = []
  # Both sides may have leaves of one name.
  known: dict[tuple[Path, str], ts.TensorStore] = {}
  for stored in (joint.wide, *(couple.narrow for couple in joint.couples)):
    place = stored.item.directory, stored.leaf.name
    if place not in known:
      try:
        known[place] = _checked(open_array(stored), stored)
      except CorruptCheckpointError as error:
        return Unreadable(joint, stored, str(error))
    arrays.append(known[place])
  return _Opened(joint, arrays[0], tuple(arrays[1:]))


def _checked(array: "ts.TensorStore", stored: StoredLeaf) -> "ts.TensorStore":
  """Returns `array`, if it is what its leaf's metadata says."""
  spec = stored.leaf.spec
  assert spec is not None
  if tuple(array.shape) != spec.shape or array.dtype.name != spec.dtype:
    raise CorruptCheckpointError(
      f"{stored.item.directory}: {stored.leaf.name}: TensorStore finds "
      f"{array.dtype.name} of shape {list(array.shape)}, relayout {spec.dtype} "
      f"of shape {list(spec.shape)}"
    )
  return array


def _read_ahead(units: Iterator[_Unit], memory_limit: int) -> Iterator[_Unit]:
  """Starts units in order and yields them, within the limit if possible."""
  pending: deque[_Unit] = deque()
  num_bytes = 0
  for unit in units:
    while pending and num_bytes + unit.num_bytes > memory_limit:
      num_bytes -= pending[0].num_bytes
      yield pending.popleft()
    unit.start()
    num_bytes += unit.num_bytes
    pending.append(unit)
  while pending:
    yield pending.popleft()


def _await(joint: Joint, stored: StoredLeaf, read: Any) -> Any:
  try:
    return read.result()
  except READ_ERRORS as error:
    return Unreadable(joint, stored, str(error))


def _free(rank: int, pins: Pins) -> list[int]:
  """Returns the axes of the wide array that are not pinned."""
  pinned = {axis for axis, _ in pins}
  return [axis for axis in range(rank) if axis not in pinned]


def _is_within(pins: Pins, slab: Slab) -> bool:
  return all(
    slab[axis].start <= index < slab[axis].stop for axis, index in pins
  )


def _index(pins: Pins, slab: Slab) -> tuple[Any, ...]:
  """Returns which values of a slab a pinned layer has."""
  at = {axis: index - slab[axis].start for axis, index in pins}
  return tuple(at.get(axis, slice(None)) for axis in range(len(slab)))


def _narrow_index(couple: Couple, slab: Slab) -> tuple[Any, ...]:
  """Returns which values of the narrow array correspond to a slab."""
  index: dict[int, Any] = dict(couple.narrow_pins)
  free = _free(len(slab), couple.wide_pins)
  for axis, narrow_axis in zip(free, couple.axes, strict=True):
    index[narrow_axis] = slab[axis]
  return tuple(index[axis] for axis in range(len(index)))


def _order(couple: Couple) -> list[int]:
  """Returns the axes of a narrow part in the order of the wide array."""
  in_order = sorted(couple.axes)
  return [in_order.index(axis) for axis in couple.axes]
