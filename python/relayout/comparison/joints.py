"""Groups pairs of leaves so that every stored array is read once.

A stack and its layers are read in the order of the stack: a chunk that spans
layers is then decoded once, not once a layer.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from relayout.comparison.keys import Key
from relayout.comparison.leaves import Part, Pins
from relayout.layouts.state import StoredLeaf


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
  """A leaf that both sides have.

  Attributes:
    key: What it is.
    a: Where the first side has it.
    b: Where the second side has it.
  """

  key: Key
  a: Part
  b: Part


@dataclasses.dataclass(frozen=True, slots=True)
class Couple:
  """What of two arrays belongs together, and is read together.

  Attributes:
    pairs: The leaf; of two whole stacks, all their layers.
    wide_pins: Which layer of the wide array it is; () for all of it.
    narrow: The other array.
    narrow_pins: Which layer of the other array it is.
    axes: For each axis of the wide array that is not pinned, the axis of the
      other.
  """

  pairs: tuple[Pair, ...]
  wide_pins: Pins
  narrow: StoredLeaf
  narrow_pins: Pins
  axes: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Joint:
  """An array, and all that is compared with parts of it.

  Attributes:
    wide: The array; a stack, if either side has one.
    wide_is_a: Whether it is of the first side.
    couples: What it is compared with.
  """

  wide: StoredLeaf
  wide_is_a: bool
  couples: tuple[Couple, ...]

  @property
  def pairs(self) -> Iterator[Pair]:
    """The leaves that are compared."""
    for couple in self.couples:
      yield from couple.pairs

  @property
  def num_bytes(self) -> int:
    """Size of what is compared, bytes."""
    spec = self.wide.leaf.spec
    assert spec is not None
    return spec.num_bytes

  def wide_part(self, pair: Pair) -> Part:
    """Returns where the wide array has a leaf."""
    return pair.a if self.wide_is_a else pair.b


def pairs_of(a: Mapping[Key, Part], b: Mapping[Key, Part]) -> list[Pair]:
  """Returns the leaves that both sides have, in the order of the second."""
  return [Pair(key, a[key], part) for key, part in b.items() if key in a]


def join(pairs: Iterable[Pair]) -> list[Joint]:
  """Groups pairs by the wider of their arrays."""
  groups: dict[tuple[bool, str], list[Pair]] = {}
  for pair in pairs:
    wide_is_a = bool(pair.a.pins) or not pair.b.pins
    wide = pair.a if wide_is_a else pair.b
    groups.setdefault((wide_is_a, wide.stored.label), []).append(pair)
  return [
    _joint(found, wide_is_a=wide_is_a)
    for (wide_is_a, _), found in groups.items()
  ]


def _joint(pairs: list[Pair], *, wide_is_a: bool) -> Joint:
  wide = pairs[0].a if wide_is_a else pairs[0].b
  couples = _whole_stacks(pairs, wide_is_a=wide_is_a) or tuple(
    _couple(pair, wide_is_a=wide_is_a) for pair in pairs
  )
  return Joint(wide.stored, wide_is_a, couples)


def _couple(pair: Pair, *, wide_is_a: bool) -> Couple:
  wide, narrow = (pair.a, pair.b) if wide_is_a else (pair.b, pair.a)
  return Couple(
    (pair,), wide.pins, narrow.stored, narrow.pins, tuple(_free_axes(narrow))
  )


def _whole_stacks(pairs: list[Pair], *, wide_is_a: bool) -> tuple[Couple, ...]:
  """Returns the two stacks as wholes, if all their layers correspond."""
  wide, narrow = (
    (pairs[0].a, pairs[0].b) if wide_is_a else (pairs[0].b, pairs[0].a)
  )
  if not narrow.pins or not _correspond(pairs):
    return ()
  if len(pairs) != _num_layers(wide) or len(pairs) != _num_layers(narrow):
    return ()
  axes = dict(zip(_free_axes(wide), _free_axes(narrow), strict=True))
  for (axis, _), (other, _) in zip(wide.pins, narrow.pins, strict=True):
    axes[axis] = other
  in_order = tuple(axes[axis] for axis in sorted(axes))
  return (Couple(tuple(pairs), (), narrow.stored, (), in_order),)


def _correspond(pairs: list[Pair]) -> bool:
  """Whether all are of one stack on either side, at the same places."""
  stored = {(pair.a.stored.label, pair.b.stored.label) for pair in pairs}
  return len(stored) == 1 and all(
    [index for _, index in pair.a.pins] == [index for _, index in pair.b.pins]
    for pair in pairs
  )


def _num_layers(part: Part) -> int:
  spec = part.stored.leaf.spec
  assert spec is not None
  count = 1
  for axis, _ in part.pins:
    count *= spec.shape[axis]
  return count


def _free_axes(part: Part) -> list[int]:
  spec = part.stored.leaf.spec
  assert spec is not None
  pinned = {axis for axis, _ in part.pins}
  return [axis for axis in range(spec.rank) if axis not in pinned]
