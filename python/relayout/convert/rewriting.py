"""What must be rewritten, in parts that are done one after the other.

A part is a small database of its own until the whole item is put together, so
a conversion that was cut short goes on with the part after the last one.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from relayout.convert.plan import ItemPlan, Slot, Stored, TargetLeaf, Way
from relayout.errors import UnsupportedError
from relayout.layouts.state import StoredLeaf

_PART_BYTES = 1 << 28


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
  """Arrays that are rewritten together, as their chunks depend on each other.

  In the common space of both sides each layer axis is an axis.  A side is
  either one array that has all axes, or one array for each layer, in C order
  over the layer axes.

  Attributes:
    shape: Length of each axis of the common space.
    layer_axes: Which of them count layers, ascending.
    sources: The stored arrays.
    targets: The target's leaves.
    source_axes: The common axis of each axis of a source array.
    target_axes: The common axis of each axis of a target array.
  """

  shape: tuple[int, ...]
  layer_axes: tuple[int, ...]
  sources: tuple[StoredLeaf, ...]
  targets: tuple[TargetLeaf, ...]
  source_axes: tuple[int, ...]
  target_axes: tuple[int, ...]

  @property
  def num_target_bytes(self) -> int:
    """Size of the target arrays in memory, bytes."""
    return sum(leaf.spec.num_bytes for leaf in self.targets if leaf.spec)


def parts(item: ItemPlan) -> tuple[tuple[Task, ...], ...]:
  """Returns the tasks of an item, in parts of some hundred megabytes."""
  result: list[tuple[Task, ...]] = []
  part: list[Task] = []
  num_bytes = 0
  for task in tasks(item.leaves):
    part.append(task)
    num_bytes += task.num_target_bytes
    if num_bytes >= _PART_BYTES:
      result.append(tuple(part))
      part, num_bytes = [], 0
  return (*result, *((tuple(part),) if part else ()))


def tasks(leaves: Sequence[TargetLeaf]) -> Iterator[Task]:
  """Yields the tasks of the leaves that are rewritten, in their order."""
  taken: dict[str, list[tuple[Slot, TargetLeaf]]] = {}
  for leaf in leaves:
    if isinstance(leaf.origin, Stored) and leaf.origin.way is Way.REWRITTEN:
      first = leaf.origin.slots[0]
      if first.source_pins and not first.target_pins:
        label = first.source.label
        taken.setdefault(label, []).append((first, leaf))
      else:
        taken[leaf.name] = [(first, leaf)]
  for members in taken.values():
    slot, leaf = members[0]
    if slot.source_pins and not slot.target_pins:
      yield _unstacking(members)
    elif slot.source_pins:
      yield _restacking(leaf)
    elif slot.target_pins:
      yield _stacking(leaf)
    else:
      yield _whole(leaf)


def _unstacking(members: Sequence[tuple[Slot, TargetLeaf]]) -> Task:
  """One array becomes an array for each layer."""
  source = members[0][0].source
  _check_alike([leaf for _, leaf in members], source)
  shape = _shape(source)
  ordered = sorted(members, key=lambda member: sorted(member[0].source_pins))
  layer_axes = tuple(sorted(axis for axis, _ in members[0][0].source_pins))
  return Task(
    shape=shape,
    layer_axes=layer_axes,
    sources=(source,),
    targets=tuple(leaf for _, leaf in ordered),
    source_axes=tuple(range(len(shape))),
    target_axes=_others(len(shape), layer_axes),
  )


def _check_alike(leaves: Sequence[TargetLeaf], source: StoredLeaf) -> None:
  """Refuses layers of one stack that shall become arrays of different kinds."""
  first = leaves[0]
  for leaf in leaves[1:]:
    if leaf.spec and first.spec and leaf.spec.dtype != first.spec.dtype:
      raise UnsupportedError(
        f"{leaf.name} shall be {leaf.spec.dtype}, and {first.name} "
        f"{first.spec.dtype}: layers of one stack ({source.label}) become "
        "arrays of one data type. Convert with --dtype first"
      )


def _stacking(leaf: TargetLeaf) -> Task:
  """An array for each layer becomes one array."""
  assert leaf.spec is not None
  assert isinstance(leaf.origin, Stored)
  slots = sorted(leaf.origin.slots, key=lambda slot: sorted(slot.target_pins))
  rank = leaf.spec.rank
  layer_axes = tuple(sorted(axis for axis, _ in slots[0].target_pins))
  return Task(
    shape=leaf.spec.shape,
    layer_axes=layer_axes,
    sources=tuple(slot.source for slot in slots),
    targets=(leaf,),
    source_axes=_others(rank, layer_axes),
    target_axes=tuple(range(rank)),
  )


def _restacking(leaf: TargetLeaf) -> Task:
  """One array becomes one with its layers elsewhere."""
  assert isinstance(leaf.origin, Stored)
  slot = leaf.origin.slots[0]
  shape = _shape(slot.source)
  moved = {
    target: source
    for (source, _), (target, _) in zip(
      slot.source_pins, slot.target_pins, strict=True
    )
  }
  others = iter(_others(len(shape), tuple(moved.values())))
  return Task(
    shape=shape,
    layer_axes=tuple(sorted(moved.values())),
    sources=(slot.source,),
    targets=(leaf,),
    source_axes=tuple(range(len(shape))),
    target_axes=tuple(
      moved[axis] if axis in moved else next(others)
      for axis in range(len(shape))
    ),
  )


def _whole(leaf: TargetLeaf) -> Task:
  """One array becomes one with other chunks or another data type."""
  assert isinstance(leaf.origin, Stored)
  source = leaf.origin.slots[0].source
  shape = _shape(source)
  axes = tuple(range(len(shape)))
  return Task(shape, (), (source,), (leaf,), axes, axes)


def _shape(stored: StoredLeaf) -> tuple[int, ...]:
  assert stored.leaf.spec is not None
  return stored.leaf.spec.shape


def _others(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
  return tuple(axis for axis in range(rank) if axis not in axes)
