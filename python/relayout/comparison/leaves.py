"""Takes the stacks of a side apart into the leaves of single layers."""

import dataclasses
from collections.abc import Iterable

from relayout.comparison.forms import Form
from relayout.comparison.keys import Key, key_of
from relayout.comparison.side import Side
from relayout.errors import LayoutError
from relayout.layouts.groupings import stacks_at_front
from relayout.layouts.layers import Grouping, LayerGroup, layer_axes
from relayout.layouts.state import Role, StateKey, StoredLeaf

type Pins = tuple[tuple[int, int], ...]
"""(axis, index) of one layer in a stack, outermost scan first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
  """A leaf of one layer: a stored array, or a slice of one.

  Attributes:
    stored: The array.
    pins: Which layer of it; () for the whole array.
  """

  stored: StoredLeaf
  pins: Pins = ()

  @property
  def shape(self) -> tuple[int, ...]:
    """Shape of the slice."""
    spec = self.stored.leaf.spec
    assert spec is not None
    pinned = {axis for axis, _ in self.pins}
    return tuple(n for axis, n in enumerate(spec.shape) if axis not in pinned)

  @property
  def label(self) -> str:
    """How messages name it, such as `items/a.b[:, 3]`."""
    if not self.pins:
      return self.stored.label
    spec = self.stored.leaf.spec
    assert spec is not None
    at = dict(self.pins)
    index = ", ".join(str(at.get(axis, ":")) for axis in range(spec.rank))
    return f"{self.stored.label}[{index}]"


@dataclasses.dataclass(frozen=True, slots=True)
class Misfit:
  """A stored leaf that can't be taken apart, and why."""

  stored: StoredLeaf
  reason: str

  def as_error(self) -> LayoutError:
    """Returns an error that says so."""
    directory = self.stored.item.directory
    return LayoutError(f"{directory}: {self.stored.leaf.name}: {self.reason}")


@dataclasses.dataclass(frozen=True, slots=True)
class Leaves:
  """The leaves of one side.

  Attributes:
    parts: By what they are, each of one layer.
    apart: Random number state that the other side's form has no place for.
    misfits: Leaves that do not fit the grouping, or are there twice.
  """

  parts: dict[Key, Part]
  apart: dict[Key, StoredLeaf]
  misfits: tuple[Misfit, ...]


def leaves_of(
  side: Side, form: Form, grouping: Grouping | None, *, same_mode: bool
) -> Leaves:
  """Returns the leaves of a side, other arrays than those of its state apart.

  Args:
    side: The side.
    form: How its layers are stored.
    grouping: Which layers form which stack; None to leave stacks whole.
    same_mode: Whether both sides are scanned, or neither is.
  """
  parts: dict[Key, Part] = {}
  apart: dict[Key, StoredLeaf] = {}
  misfits: list[Misfit] = []
  for key, stored in {**side.state.leaves, **side.counters()}.items():
    if key.role is Role.RNG and not same_mode:
      apart[key_of(key)] = stored
      continue
    try:
      found = _parts(key, stored, form, grouping)
      _add(parts, found)
    except LayoutError as error:
      misfits.append(Misfit(stored, str(error)))
  return Leaves(parts, apart, tuple(misfits))


def _add(parts: dict[Key, Part], found: dict[Key, Part]) -> None:
  for key in found:
    if key in parts:
      raise LayoutError(f"the {key} is {parts[key].label} already")
  parts |= found


def _parts(
  key: StateKey, stored: StoredLeaf, form: Form, grouping: Grouping | None
) -> dict[Key, Part]:
  whole = {key_of(key): Part(stored)}
  if grouping is None or not key.path or key.role is Role.RNG:
    return whole
  scanned = grouping.split_scanned(key.path)
  if scanned is None:
    return whole
  group = scanned.group
  return {
    key_of(dataclasses.replace(key, path=member + scanned.suffix)): Part(
      stored, pins
    )
    for member, pins in zip(
      group.members, _pins_of(key, stored, form, group), strict=True
    )
  }


def _pins_of(
  key: StateKey, stored: StoredLeaf, form: Form, group: LayerGroup
) -> Iterable[Pins]:
  """Returns where each layer of a group lies in its stack."""
  spec = stored.leaf.spec
  assert spec is not None
  depth = len(group.lengths)
  if spec.rank < depth:
    raise LayoutError(
      f"shape {list(spec.shape)} has no room for {depth} layer axes"
    )
  axes = layer_axes(
    depth,
    spec.rank - depth,
    scan_axis=form.scan_axis,
    at_front=stacks_at_front(key.path),
  )
  for axis, length in zip(axes, group.lengths, strict=True):
    if spec.shape[axis] != length:
      raise LayoutError(
        f"shape {list(spec.shape)} holds {spec.shape[axis]} layers along axis "
        f"{axis}, expected {length}{_hint(spec.shape, length)}"
      )
  return (
    tuple(zip(axes, _place(number, group.lengths), strict=True))
    for number in range(len(group.members))
  )


def _hint(shape: tuple[int, ...], length: int) -> str:
  axes = [axis for axis, found in enumerate(shape) if found == length]
  if len(axes) != 1:
    return ""
  return f"; the layers seem to be at axis {axes[0]}"


def _place(number: int, lengths: tuple[int, ...]) -> tuple[int, ...]:
  """Returns the indices of a layer along each layer axis."""
  result = []
  for length in reversed(lengths):
    number, index = divmod(number, length)
    result.append(index)
  return tuple(reversed(result))
