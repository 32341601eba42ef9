"""Compares which leaves two steps have, with their shapes and data types."""

from collections.abc import Iterable, Iterator, Mapping

from relayout.comparison.forms import Forms
from relayout.comparison.joints import Pair, pairs_of
from relayout.comparison.keys import OTHER, Key
from relayout.comparison.leaves import Leaves, Part, leaves_of
from relayout.comparison.side import Side
from relayout.comparison.steps import ASIDE
from relayout.diff.report import LeafDiff, Status, Stored
from relayout.layouts.state import Role, StoredLeaf
from relayout.layouts.tunix import OPTIMIZER_ITEM

_COUNTERS = frozenset(
  {Role.STEP.value, Role.SCHEDULE_COUNT.value, Role.COUNT.value}
)


class Structure:
  """The leaves of two steps, matched.

  Attributes:
    pairs: Leaves of one shape that both have; their values can be compared.
    settled: Leaves of which names and metadata say all.
  """

  def __init__(self, a: Side, b: Side, forms: Forms) -> None:
    """Matches the leaves of two sides."""
    self._a, self._b = a, b
    self._is_named_alike = forms.grouping is None and a.naming == b.naming
    same_mode = forms.a.mode == forms.b.mode
    first = leaves_of(a, forms.a, forms.grouping, same_mode=same_mode)
    second = leaves_of(b, forms.b, forms.grouping, same_mode=same_mode)
    _add_others(first, a)
    _add_others(second, b)
    aside = [
      *_found_aside(first, a, b),
      *_found_aside(second, b, a, swap=True),
    ]
    matched = _best(
      filter(self._is_comparable, pairs_of(first.parts, second.parts)), aside
    )
    self.settled = [
      *self._misfits(first, second),
      *self._only(first, matched, is_a=True),
      *self._only(second, matched, is_a=False),
      *self._apart(first, matched, is_a=True),
      *self._apart(second, matched, is_a=False),
      *_empty_leaves(a, b),
    ]
    unlike = [pair for pair in matched if pair.a.shape != pair.b.shape]
    self.settled += map(_other_shape, unlike)
    self.pairs = [pair for pair in matched if pair.a.shape == pair.b.shape]

  def is_dtype_free(self, pair: Pair) -> bool:
    """Whether a leaf has the data type that its layout gives it."""
    return pair.key.role in _COUNTERS and not self._is_named_alike

  def _is_comparable(self, pair: Pair) -> bool:
    """Whether leaves of one name are the same; wrappers' may not be."""
    if pair.key.role != OTHER or self._is_named_alike:
      return True
    return pair.a.stored.item.name != OPTIMIZER_ITEM

  def _misfits(self, a: Leaves, b: Leaves) -> Iterator[LeafDiff]:
    for leaves, is_a in ((a, True), (b, False)):
      for misfit in leaves.misfits:
        key = Key(OTHER, _raw_path(misfit.stored))
        yield _one_sided(
          key, Status.SHAPE, stored_of(misfit.stored), is_a, misfit.reason
        )

  def _only(
    self, leaves: Leaves, matched: Iterable[Pair], *, is_a: bool
  ) -> Iterator[LeafDiff]:
    """Yields the leaves that the other side lacks."""
    known = {(pair.a if is_a else pair.b).label for pair in matched}
    keys = {pair.key for pair in matched}
    status = Status.ONLY_A if is_a else Status.ONLY_B
    for key, part in leaves.parts.items():
      if part.label in known or (key.role == Role.RNG.value and key in keys):
        continue
      reason = self._no_place(key, part, is_a=is_a)
      found = Status.NO_PLACE if reason else status
      yield _one_sided(key, found, stored_of(part), is_a, reason)

  def _no_place(self, key: Key, part: Part, *, is_a: bool) -> str:
    """Returns why the other side has no place for a leaf, or ""."""
    side = self._a if is_a else self._b
    if part.stored.item is side.aside:
      return "set aside by a conversion; no trainer reads it"
    if key.role != OTHER or self._is_named_alike:
      return ""
    reasons = {x.leaf.label: x.reason for x in side.state.dropped}
    if part.label in reasons:
      return reasons[part.label]
    counters = {
      leaf.label
      for leaf in (side.state.step.sources if side.state.step else ())
    }
    return "a counter of the layout's own" if part.label in counters else ""

  def _apart(
    self, leaves: Leaves, matched: Iterable[Pair], *, is_a: bool
  ) -> Iterator[LeafDiff]:
    known = {(pair.a if is_a else pair.b).label for pair in matched}
    for key, stored in leaves.apart.items():
      if stored.label not in known:
        yield _one_sided(
          key,
          Status.NO_PLACE,
          stored_of(stored),
          is_a,
          "rng state of a scanned model has no counterpart in an unscanned one",
        )


def stored_of(part: Part | StoredLeaf, digest: str = "") -> Stored:
  """Returns where a side has a leaf, for reports."""
  stored = part.stored if isinstance(part, Part) else part
  spec = stored.leaf.spec
  if spec is None:
    return Stored(stored.label, (), stored.leaf.value_type)
  shape = part.shape if isinstance(part, Part) else spec.shape
  return Stored(part.label, shape, spec.dtype, digest)


def _raw_path(stored: StoredLeaf) -> tuple[str, ...]:
  return (stored.item.name, *stored.leaf.path.names)


def _add_others(leaves: Leaves, side: Side) -> None:
  """Adds what is no part of the state, by the names it is stored under."""
  misfits = {misfit.stored.label for misfit in leaves.misfits}
  for stored in side.others():
    if stored.label not in misfits:
      leaves.parts[Key(OTHER, _raw_path(stored))] = Part(stored)
  for place, stored in side.set_aside().items():
    path = (ASIDE, place.origin, place.item, *place.path)
    leaves.parts[Key(OTHER, path)] = Part(stored)


def _found_aside(
  leaves: Leaves, side: Side, other: Side, *, swap: bool = False
) -> Iterator[Pair]:
  """Yields leaves that only the item of leaves set aside has on that side."""
  kept = other.set_aside()
  parts: dict[Key, Part] = {
    **leaves.parts,
    **{key: Part(stored) for key, stored in leaves.apart.items()},
  }
  for key, part in parts.items():
    stored = part.stored
    found = kept.get(side.aside_key(stored))
    if found is not None and not part.pins:
      pair = (Part(found), part) if swap else (part, Part(found))
      yield Pair(key, *pair)


def _best(pairs: Iterable[Pair], aside: Iterable[Pair]) -> list[Pair]:
  """Returns one pair of each leaf.

  What was set aside is what a side had; rng state in its place was derived.
  """
  found = {pair.key: pair for pair in aside}
  for pair in pairs:
    if pair.key.role != Role.RNG.value or pair.key not in found:
      found[pair.key] = pair
  return list(found.values())


def _one_sided(
  key: Key, status: Status, stored: Stored, is_a: bool, detail: str = ""
) -> LeafDiff:
  a, b = (stored, None) if is_a else (None, stored)
  return LeafDiff(key, status, a, b, detail)


def _other_shape(pair: Pair) -> LeafDiff:
  return LeafDiff(
    pair.key,
    Status.SHAPE,
    stored_of(pair.a),
    stored_of(pair.b),
    f"shape {list(pair.a.shape)} / {list(pair.b.shape)}",
  )


def _empty_leaves(a: Side, b: Side) -> Iterator[LeafDiff]:
  """Yields the leaves without an array, of two sides of one layout."""
  if a.step.layout != b.step.layout:
    return
  first, second = _empty(a), _empty(b)
  for path in first.keys() | second.keys():
    one, other = first.get(path), second.get(path)
    key = Key(OTHER, path)
    if one is None or other is None:
      status = Status.ONLY_A if one else Status.ONLY_B
      found = one or other
      assert found is not None
      yield _one_sided(key, status, stored_of(found), one is not None)
    else:
      same = one.leaf.value_type == other.leaf.value_type
      status = Status.EQUAL if same else Status.METADATA
      yield LeafDiff(key, status, stored_of(one), stored_of(other))


def _empty(side: Side) -> Mapping[tuple[str, ...], StoredLeaf]:
  return {
    _raw_path(stored): stored
    for stored in side.stored()
    if stored.leaf.spec is None
  }
