"""Finds for each leaf of the target what of the source it must equal."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from relayout.comparison.forms import Forms
from relayout.comparison.joints import Pair, pairs_of
from relayout.comparison.keys import OTHER, Key
from relayout.comparison.leaves import Leaves, Misfit, Part, leaves_of
from relayout.comparison.side import Side
from relayout.layouts.state import Role, StoredLeaf
from relayout.verify.account import Way

_SCHEDULE = Key(Role.SCHEDULE_COUNT.value)


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
  """That a target leaf holds certain values of the source.

  Attributes:
    way: How it holds them.
    target: The target leaf.
    pairs: Its layers, in the order of the stack; or the leaf itself.
  """

  way: Way
  target: StoredLeaf
  pairs: tuple[Pair, ...]

  @property
  def sources(self) -> tuple[StoredLeaf, ...]:
    """The source leaves that the values are from, each once."""
    found = {pair.a.stored.label: pair.a.stored for pair in self.pairs}
    return tuple(found.values())

  @property
  def source_labels(self) -> tuple[str, ...]:
    """The labels of `sources`."""
    return tuple(stored.label for stored in self.sources)


@dataclasses.dataclass(frozen=True, slots=True)
class Matched:
  """Which leaves belong together.

  Attributes:
    claims: Target leaves with what they must equal.
    misfits: Target leaves whose shapes do not fit their names.
    extra: Target leaves that no source leaf equals, by what they are.
    rest: Source leaves that no target leaf holds, by what they are.
    source_others: Source arrays that no state has, and no target leaf holds.
    target_others: Target arrays that no state has, and that equal none.
  """

  claims: tuple[Claim, ...]
  misfits: tuple[Misfit, ...]
  extra: Mapping[Key, Part]
  rest: Mapping[Key, Part]
  source_others: tuple[StoredLeaf, ...]
  target_others: tuple[StoredLeaf, ...]


def match(source: Side, target: Side, forms: Forms) -> Matched:
  """Matches leaves by what they are; those of no layout by their names.

  Raises:
    LayoutError: If the source's leaves do not fit its form.
  """
  same_mode = forms.a.mode == forms.b.mode
  first = _leaves(source, forms, same_mode=same_mode, is_source=True)
  second = _leaves(target, forms, same_mode=same_mode, is_source=False)
  if _SCHEDULE not in first.parts:
    second.parts.pop(_SCHEDULE, None)  # it follows from another counter
  if target.step.layout == "tunix":
    _set_apart_other_keys(first, second)
  claims = _claims(pairs_of(first.parts, second.parts))
  extra = _without(second, first.parts)
  rest = _without(first, second.parts)
  raw = _Raw(source, target)
  # A stack may be claimed for some of its layers only, so these do not count.
  num_of_state = len(claims)
  others = {stored.label: stored for stored in target.others()}
  if forms.grouping is None and source.naming == target.naming:
    claims += raw.same_names(others.values())
  claims += raw.restored([*others.values(), *_stored(extra)])
  claims += raw.set_aside()
  others_claims = claims[num_of_state:]
  held = {label for claim in others_claims for label in claim.source_labels}
  claimed = {claim.target.label for claim in others_claims}
  return Matched(
    claims=tuple(claims),
    misfits=second.misfits,
    extra=_unclaimed(extra, claimed),
    rest=_unclaimed(rest, held),
    source_others=tuple(
      stored for stored in raw.source_others() if stored.label not in held
    ),
    target_others=tuple(
      stored
      for stored in (*others.values(), *target.set_aside().values())
      if stored.label not in claimed
    ),
  )


def _leaves(
  side: Side, forms: Forms, *, same_mode: bool, is_source: bool
) -> Leaves:
  """Returns the leaves of a side; its counters follow rules of their own."""
  form = forms.a if is_source else forms.b
  leaves = leaves_of(side, form, forms.grouping, same_mode=same_mode)
  for key in side.counters():
    leaves.parts.pop(Key(key.role.value), None)
  if is_source:
    for misfit in leaves.misfits:
      raise misfit.as_error()
  return leaves


def _set_apart_other_keys(first: Leaves, second: Leaves) -> None:
  """Takes out rng keys of another width: Tunix's programs have their own."""
  for pair in pairs_of(first.parts, second.parts):
    if is_rng(pair.key) and pair.a.shape != pair.b.shape:
      first.apart[pair.key] = first.parts.pop(pair.key).stored
      second.apart[pair.key] = second.parts.pop(pair.key).stored


def _without(leaves: Leaves, others: Mapping[Key, Part]) -> dict[Key, Part]:
  """Returns the leaves that `others` lack, and those with no place there."""
  found = {k: part for k, part in leaves.parts.items() if k not in others}
  return found | {key: Part(stored) for key, stored in leaves.apart.items()}


def _unclaimed(parts: Mapping[Key, Part], claimed: set[str]) -> dict[Key, Part]:
  return {
    key: part for key, part in parts.items() if part.stored.label not in claimed
  }


def _stored(parts: Mapping[Key, Part]) -> Iterator[StoredLeaf]:
  return (part.stored for part in parts.values() if not part.pins)


def _claims(pairs: Iterable[Pair]) -> list[Claim]:
  """Groups pairs by the target leaf."""
  groups: dict[str, list[Pair]] = {}
  for pair in pairs:
    groups.setdefault(pair.b.stored.label, []).append(pair)
  return [
    Claim(_way(found[0]), found[0].b.stored, tuple(found))
    for found in groups.values()
  ]


def _way(pair: Pair) -> Way:
  match bool(pair.a.pins), bool(pair.b.pins):
    case True, True:
      return Way.RESTACKED
    case True, False:
      return Way.UNSTACKED
    case False, True:
      return Way.STACKED
    case _:
      return Way.MOVED


class _Raw:
  """Matches leaves by the names that they are stored under."""

  def __init__(self, source: Side, target: Side) -> None:
    self._source, self._target = source, target
    self._stored = {
      source.aside_key(stored): stored
      for stored in source.stored()
      if stored.leaf.spec is not None
    }
    self._aside = source.set_aside()

  def source_others(self) -> Iterator[StoredLeaf]:
    """Yields the source's arrays that are no part of its state."""
    yield from self._source.others()
    yield from self._aside.values()

  def same_names(self, leaves: Iterable[StoredLeaf]) -> Iterator[Claim]:
    """Yields claims of leaves of no state, where both are named alike."""
    others = {
      self._source.aside_key(stored): stored for stored in self._source.others()
    }
    for stored in leaves:
      found = others.get(self._target.aside_key(stored))
      if found is not None:
        yield _claim(Way.MOVED, found, stored)

  def restored(self, leaves: Iterable[StoredLeaf]) -> Iterator[Claim]:
    """Yields claims of leaves that the source has set aside."""
    for stored in leaves:
      found = self._aside.get(self._target.aside_key(stored))
      if found is not None:
        yield _claim(Way.RESTORED, found, stored)

  def set_aside(self) -> Iterator[Claim]:
    """Yields claims of leaves that the target has set aside."""
    for place, stored in self._target.set_aside().items():
      found = self._stored.get(place) or self._aside.get(place)
      if found is not None:
        yield _claim(Way.SET_ASIDE, found, stored)


def _claim(way: Way, source: StoredLeaf, target: StoredLeaf) -> Claim:
  key = Key(OTHER, (target.item.name, *target.leaf.path.names))
  pair = Pair(key, Part(source), Part(target))
  return Claim(way, target, (pair,))


def is_rng(key: Key) -> bool:
  """Whether a leaf is random number state."""
  return key.role == Role.RNG.value
