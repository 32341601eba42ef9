"""Opens the arrays of a comparison, and checks that they can be equal."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from relayout.errors import CorruptCheckpointError
from relayout.layouts import stacking
from relayout.layouts.state import StoredLeaf
from relayout.verify.account import Difference, Kind
from relayout.verify.matching import Comparison
from relayout.verify.oracle import Oracle

if TYPE_CHECKING:
  import tensorstore as ts

type OracleOf = Callable[[StoredLeaf], Oracle]


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
  """A comparison whose arrays are open and alike in shape and type.

  Attributes:
    comparison: What is compared.
    sources: The source's arrays.
    target: The target's array.
    axis: Axis of the layers in the target; None if it stacks none.
  """

  comparison: Comparison
  sources: tuple["ts.TensorStore", ...]
  target: "ts.TensorStore"
  axis: int | None

  @property
  def itemsize(self) -> int:
    """Size of an element, bytes."""
    return int(self.target.dtype.numpy_dtype.itemsize)

  @property
  def num_bytes(self) -> int:
    """Size of the target's values, bytes."""
    return int(self.target.size) * self.itemsize


def open_comparison(
  comparison: Comparison, oracle_of: OracleOf
) -> Opened | Difference:
  """Opens the arrays; a difference if they can't be equal.

  Raises:
    CorruptCheckpointError: If an array of the source can't be opened.
  """
  target = comparison.target
  try:
    array = oracle_of(target).open(target.leaf.name)
  except CorruptCheckpointError as error:
    return unreadable(comparison, error)
  sources = tuple(
    oracle_of(source).open(source.leaf.name) for source in comparison.sources
  )
  axis = None
  if comparison.layers is not None:
    axis = stacking.scan_axis(sources[0].rank)
  opened = Opened(comparison, sources, array, axis)
  return _unlike(opened) or _incomplete(opened, oracle_of) or opened


def _unlike(opened: Opened) -> Difference | None:
  """Returns how the arrays differ in shape or type, or None."""
  comparison = opened.comparison
  if comparison.missing_layers:
    return _difference(
      Kind.MISSING,
      comparison,
      f"stacks layers that are not all there: the source lacks this leaf in "
      f"layers {list(comparison.missing_layers)} of {comparison.num_layers}",
    )
  for source, stored in zip(opened.sources, comparison.sources, strict=True):
    expected = _expected_shape(opened, source)
    found = tuple(opened.target.shape)
    if found != expected:
      detail = (
        f"shape {list(found)}, expected {list(expected)} from {stored.label}"
        f"{_shape_hint(opened, found)}"
      )
      return _difference(Kind.SHAPE, comparison, detail)
    if opened.target.dtype != source.dtype:
      detail = (
        f"data type {opened.target.dtype.name}, expected {source.dtype.name} "
        f"from {stored.label}"
      )
      return _difference(Kind.DTYPE, comparison, detail)
  return None


def _expected_shape(
  opened: Opened, source: "ts.TensorStore"
) -> tuple[int, ...]:
  shape = tuple(source.shape)
  if opened.axis is None:
    return shape
  return (*shape[: opened.axis], len(opened.sources), *shape[opened.axis :])


def _shape_hint(opened: Opened, found: tuple[int, ...]) -> str:
  """Says where the layers seem to be, if the shape shows it."""
  if opened.axis is None:
    return ""
  layer = tuple(opened.sources[0].shape)
  count = len(opened.sources)
  for axis in range(len(found)):
    rest = found[:axis] + found[axis + 1 :]
    if rest == layer and found[axis] == count:
      return (
        f"; the layers are at axis {axis}, and MaxText has them at "
        f"{opened.axis}"
      )
    if rest == layer and axis == opened.axis:
      return f"; it holds {found[axis]} layers, the source has {count}"
  return ""


def _incomplete(opened: Opened, oracle_of: OracleOf) -> Difference | None:
  """Returns that chunks are absent, which would be read as the fill value."""
  comparison = opened.comparison
  if any(_num_absent(source, oracle_of) for source in comparison.sources):
    return None
  absent = _num_absent(comparison.target, oracle_of)
  if not absent:
    return None
  detail = f"{absent} of its chunks are not stored, all of the source's are"
  return _difference(Kind.STORE, comparison, detail)


def _num_absent(stored: StoredLeaf, oracle_of: OracleOf) -> int:
  """Returns how many chunks of an array are not stored."""
  assert stored.leaf.spec is not None
  expected = 1
  for length in stored.leaf.spec.grid:
    expected *= length
  found = oracle_of(stored).arrays[stored.leaf.name].num_chunks
  return max(0, expected - found)


def unreadable(comparison: Comparison, error: Exception) -> Difference:
  """Returns that the target's array can't be read."""
  return _difference(Kind.UNREADABLE, comparison, f"can't be read: {error}")


def _difference(kind: Kind, comparison: Comparison, detail: str) -> Difference:
  sources = tuple(source.label for source in comparison.sources)
  return Difference(kind, comparison.target.label, detail, sources)
