"""Composes the leaves of a target from those of a source.

Each source leaf is taken apart into the leaves of single layers by the rules
of its own form, and these are put together by the rules of the target's.  So
any form can become any other.
"""

import dataclasses
from collections.abc import Iterator, Mapping

from relayout.convert.form import Form
from relayout.convert.plan import Pins, Slot
from relayout.errors import LayoutError
from relayout.layouts.groupings import stacks_at_front
from relayout.layouts.layers import LayerGroup, layer_axes
from relayout.layouts.state import StateKey, StoredLeaf


@dataclasses.dataclass(frozen=True, slots=True)
class Composed:
  """A target leaf, by what it is, and what it is made of.

  Attributes:
    key: What it is; the path is that of the target's form.
    slots: Its parts, layer 0 first.
    layers: Its layer axes, each with its length; empty unless it is a stack.
  """

  key: StateKey
  slots: tuple[Slot, ...]
  layers: tuple[tuple[int, int], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
  """One layer's leaf, in a stored array.

  Attributes:
    stored: The array.
    pins: Which part of it.
    rank: Rank of the part.
  """

  stored: StoredLeaf
  pins: Pins
  rank: int


def compose(
  leaves: Mapping[StateKey, StoredLeaf], source: Form, target: Form
) -> list[Composed]:
  """Returns the target's leaves.

  Args:
    leaves: The source's leaves that go on.
    source: How they are stored.
    target: How the target stores them.

  Raises:
    LayoutError: If leaves of a stack are missing, or two have one name.
  """
  if source.is_stored_like(target):
    return [_kept(key, leaf, target) for key, leaf in leaves.items()]
  parts = _parts(leaves, source)
  if target.mode != "scanned":
    return [
      Composed(key, (Slot(part.stored, part.pins),))
      for key, part in parts.items()
    ]
  return [*_stacks(parts, target)]


def _kept(key: StateKey, stored: StoredLeaf, form: Form) -> Composed:
  """Returns a leaf that keeps its layers."""
  found = None
  if form.mode == "scanned" and form.grouping and key.path:
    found = form.grouping.split_scanned(key.path)
  if found is None:
    return Composed(key, (Slot(stored),))
  rank = _rank(stored) - len(found.group.lengths)
  axes = _axes(found.group, rank, key, form)
  layers = tuple(zip(axes, found.group.lengths, strict=True))
  return Composed(key, (Slot(stored),), layers)


def _parts(
  leaves: Mapping[StateKey, StoredLeaf], source: Form
) -> dict[StateKey, _Part]:
  """Returns the leaves of single layers."""
  result: dict[StateKey, _Part] = {}
  for key, stored in leaves.items():
    for part_key, part in _take_apart(key, stored, source):
      other = result.setdefault(part_key, part)
      if other is not part:
        raise LayoutError(
          f"{stored.label} and {other.stored.label} both hold {part_key}: the "
          "checkpoint holds leaves of two models"
        )
  return result


def _take_apart(
  key: StateKey, stored: StoredLeaf, source: Form
) -> Iterator[tuple[StateKey, _Part]]:
  rank = _rank(stored)
  found = None
  if source.mode == "scanned" and source.grouping and key.path:
    found = source.grouping.split_scanned(key.path)
  if found is None:
    yield key, _Part(stored, (), rank)
    return
  group, suffix = found.group, found.suffix
  part_rank = rank - len(group.lengths)
  axes = _axes(group, part_rank, key, source)
  for member, prefix in enumerate(group.members):
    pins = _pins(group, member, axes)
    part_key = dataclasses.replace(key, path=(*prefix, *suffix))
    yield part_key, _Part(stored, pins, part_rank)


def _stacks(
  parts: Mapping[StateKey, _Part], target: Form
) -> Iterator[Composed]:
  """Yields the leaves of a scanned target."""
  assert target.grouping is not None
  members: dict[StateKey, dict[int, _Part]] = {}
  groups: dict[StateKey, LayerGroup] = {}
  for key, part in parts.items():
    found = target.grouping.split_unscanned(key.path) if key.path else None
    if found is None:
      yield Composed(key, (Slot(part.stored, part.pins),))
      continue
    path = (*found.group.scanned, *found.suffix)
    stacked = dataclasses.replace(key, path=path)
    groups[stacked] = found.group
    members.setdefault(stacked, {})[found.number] = part
  for key, found_members in members.items():
    yield _stack(key, groups[key], found_members, target)


def _stack(
  key: StateKey, group: LayerGroup, members: Mapping[int, _Part], target: Form
) -> Composed:
  missing = [i for i in range(len(group.members)) if i not in members]
  if missing:
    names = ", ".join("/".join(group.members[i]) for i in missing[:8])
    raise LayoutError(
      f"{key}: {len(missing)} of the {len(group.members)} layers of its stack "
      f"have no such leaf: {names}. Layers of one stack are alike: check "
      "--model_name, or keep the layers unscanned with --scan_layers=keep"
    )
  parts = [members[i] for i in range(len(group.members))]
  axes = _axes(group, parts[0].rank, key, target)
  layers = tuple(zip(axes, group.lengths, strict=True))
  if all(
    part.stored is parts[0].stored and part.pins == _pins(group, i, axes)
    for i, part in enumerate(parts)
  ):
    return Composed(key, (Slot(parts[0].stored),), layers)
  slots = tuple(
    Slot(part.stored, part.pins, _pins(group, i, axes))
    for i, part in enumerate(parts)
  )
  return Composed(key, slots, layers)


def _axes(
  group: LayerGroup, rank: int, key: StateKey, form: Form
) -> tuple[int, ...]:
  """Returns the layer axes of the stack of arrays of `rank`.

  What is no weight is stacked in front.
  """
  return layer_axes(
    len(group.lengths),
    rank,
    scan_axis=form.scan_axis,
    at_front=stacks_at_front(key.path),
  )


def _pins(group: LayerGroup, member: int, axes: tuple[int, ...]) -> Pins:
  """Returns where layer number `member` lies in the stack."""
  index = []
  for length in reversed(group.lengths):
    member, place = divmod(member, length)
    index.append(place)
  return tuple(zip(axes, reversed(index), strict=True))


def _rank(stored: StoredLeaf) -> int:
  assert stored.leaf.spec is not None
  return stored.leaf.spec.rank
