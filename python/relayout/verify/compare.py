"""Compares arrays of both sides, byte for byte, under a memory limit."""

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import StoredLeaf
from relayout.verify import bits, slabs
from relayout.verify.account import Difference
from relayout.verify.matching import Comparison
from relayout.verify.opening import (
  Opened,
  OracleOf,
  open_comparison,
  unreadable,
)
from relayout.verify.oracle import READ_ERRORS, chunk_shape
from relayout.verify.slabs import Slab

if TYPE_CHECKING:
  import tensorstore as ts

_SLABS_IN_FLIGHT = 4
_COPIES_PER_SLAB = 6
"""Of both sides the values, and the chunks they are from, before and after
decoding."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
  """The outcome of a comparison.

  Attributes:
    comparison: What was compared.
    num_bytes: Size of the target's values, bytes.
    axis: Axis of the layers in the target; None if it stacks none.
    mismatch: Where values differ, or None.
    problem: Why values could not be compared, or None.
  """

  comparison: Comparison
  num_bytes: int = 0
  axis: int | None = None
  mismatch: bits.Mismatch | None = None
  problem: Difference | None = None


def compare_all(
  comparisons: Iterable[Comparison], oracle_of: OracleOf, memory_limit: int
) -> Iterator[Compared]:
  """Compares arrays in order, reading ahead.

  Args:
    comparisons: What to compare.
    oracle_of: Gives the store that holds a leaf.
    memory_limit: Bytes to hold at once, about; a single chunk is read even if
      it is larger.

  Yields:
    The outcome of each comparison.

  Raises:
    CorruptCheckpointError: If an array of the source can't be read.
  """
  units = _units(comparisons, oracle_of, memory_limit)
  total: bits.Mismatch | None = None
  problem: Difference | None = None
  for unit in _read_ahead(units, memory_limit):
    if unit.opened is None:
      yield Compared(unit.comparison, problem=unit.problem)
      continue
    try:
      total = bits.merge(total, _finish(unit, unit.opened))
    except _TargetError as error:
      problem = problem or unreadable(unit.comparison, error)
    if unit.is_last:
      opened = unit.opened
      yield Compared(
        unit.comparison, opened.num_bytes, opened.axis, total, problem
      )
      total = problem = None


@dataclasses.dataclass(slots=True)
class _Unit:
  """A slab of a comparison, to be read at once.

  Attributes:
    comparison: The comparison.
    opened: It, opened; None if there is nothing to read.
    problem: Why there is nothing to read.
    slab: What to read of the target.
    is_last: Whether no more follows of the comparison.
    reads: Once started, the values of the target, then those of each source.
  """

  comparison: Comparison
  opened: Opened | None = None
  problem: Difference | None = None
  slab: Slab | None = None
  is_last: bool = True
  reads: tuple[Any, ...] = ()

  @property
  def num_bytes(self) -> int:
    """Memory that reading takes, bytes."""
    if self.opened is None or self.slab is None:
      return 0
    num_bytes = slabs.num_elements(self.slab) * self.opened.itemsize
    return num_bytes * _COPIES_PER_SLAB

  def start(self) -> None:
    """Starts to read."""
    if self.opened is not None and self.slab is not None:
      target = self.opened.target[self.slab].read()
      sources = (part.read() for part in _source_parts(self.opened, self.slab))
      self.reads = (target, *sources)


class _TargetError(Exception):
  """The target's values can't be read."""


def _units(
  comparisons: Iterable[Comparison], oracle_of: OracleOf, memory_limit: int
) -> Iterator[_Unit]:
  limit = memory_limit // (_SLABS_IN_FLIGHT * _COPIES_PER_SLAB)
  for comparison in comparisons:
    opened = open_comparison(comparison, oracle_of)
    if isinstance(opened, Difference):
      yield _Unit(comparison, problem=opened)
      continue
    shape = opened.target.shape
    step = slabs.slab_shape(shape, _chunk_shape(opened), opened.itemsize, limit)
    cut: list[Slab | None] = [*slabs.slabs(shape, step)] or [None]
    for i, slab in enumerate(cut, start=1):
      yield _Unit(comparison, opened, slab=slab, is_last=i == len(cut))


def _read_ahead(units: Iterator[_Unit], memory_limit: int) -> Iterator[_Unit]:
  """Starts units in order and yields them, within the limit if possible."""
  pending: deque[_Unit] = deque()
  num_bytes = 0
  for unit in units:
    while pending and num_bytes + unit.num_bytes > memory_limit:
      yield pending[0]
      num_bytes -= pending.popleft().num_bytes
    unit.start()
    num_bytes += unit.num_bytes
    pending.append(unit)
  while pending:
    yield pending.popleft()


def _chunk_shape(opened: Opened) -> tuple[int, ...]:
  """Returns a shape of whole chunks, of the target and of the source."""
  target = chunk_shape(opened.target)
  source = chunk_shape(opened.sources[0])
  if opened.axis is not None:
    source = (*source[: opened.axis], 1, *source[opened.axis :])
  return tuple(max(pair) for pair in zip(target, source, strict=True))


def _source_parts(opened: Opened, slab: Slab) -> Iterator["ts.TensorStore"]:
  """Yields what a slab of the target must equal, layer by layer."""
  if opened.axis is None:
    yield opened.sources[0][slab]
    return
  layers = slab[opened.axis]
  rest = slab[: opened.axis] + slab[opened.axis + 1 :]
  for layer in range(layers.start, layers.stop):
    yield opened.sources[layer][rest]


def _finish(unit: _Unit, opened: Opened) -> bits.Mismatch | None:
  """Waits for the values of a unit, and returns where they differ."""
  if unit.slab is None:
    return None
  target = _await_target(unit)
  sources = [
    _await_source(read, stored)
    for read, stored in zip(
      unit.reads[1:], _sources_of(opened, unit.slab), strict=True
    )
  ]
  unit.reads = ()
  if opened.axis is None:
    return _shifted(bits.mismatch(sources[0], target), unit.slab, None, 0)
  total = None
  for i, source in enumerate(sources):
    part = target.take(i, axis=opened.axis)
    found = bits.mismatch(source, part)
    total = bits.merge(total, _shifted(found, unit.slab, opened.axis, i))
  return total


def _sources_of(opened: Opened, slab: Slab) -> tuple[StoredLeaf, ...]:
  sources = opened.comparison.sources
  if opened.axis is None:
    return sources
  return sources[slab[opened.axis]]


def _await_target(unit: _Unit) -> Any:
  try:
    return unit.reads[0].result()
  except READ_ERRORS as error:
    raise _TargetError(str(error)) from error


def _await_source(read: Any, stored: StoredLeaf) -> Any:
  try:
    return read.result()
  except READ_ERRORS as error:
    raise CorruptCheckpointError(
      f"{stored.item.directory}: array {stored.leaf.name}: {error}"
    ) from error


def _shifted(
  found: bits.Mismatch | None, slab: Slab, axis: int | None, layer: int
) -> bits.Mismatch | None:
  """Returns a mismatch of a part of a slab with its index in the array."""
  if found is None:
    return None
  index = found.first
  if axis is not None:
    index = (*index[:axis], layer, *index[axis:])
  first = tuple(i + part.start for i, part in zip(index, slab, strict=True))
  return dataclasses.replace(found, first=first)
