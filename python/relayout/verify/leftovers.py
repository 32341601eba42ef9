"""Judges the source leaves that the target does not hold.

The rules are stated here once more, apart from those of the conversion: a leaf
may be left out for one of these reasons only.
"""

import dataclasses
from collections.abc import Iterator

from relayout.comparison.forms import Forms
from relayout.comparison.keys import Key
from relayout.comparison.leaves import Part
from relayout.comparison.side import Side
from relayout.comparison.steps import ASIDE
from relayout.layouts.layers import Grouping
from relayout.layouts.state import Role, StoredLeaf
from relayout.tree.key_path import dotted
from relayout.verify.account import Account, Difference, Dropped, Kind
from relayout.verify.counters import expected_position
from relayout.verify.matching import Matched, is_rng
from relayout.verify.requests import reason_to_leave_out
from relayout.verify.scalars import count_nonzero

WEIGHTS_ONLY = "the target holds weights only"
_MODEL_ROLES = (Role.WEIGHT.value, Role.AUXILIARY.value)
_ACCUMULATOR = "acc_grads"
_READABLE_KEY = ("unsafe_rbg", 4)
"""What MaxText's pre-training can read: implementation, words in a key."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judge:
  """Decides whether leaves may be left out.

  Attributes:
    source: The source.
    target: The target.
    forms: How both are stored.
    weights_only: Whether the target has no optimizer and no step at all.
    memory_limit: Bytes to hold at once, about.
  """

  source: Side
  target: Side
  forms: Forms
  weights_only: bool
  memory_limit: int

  def accounts(self, matched: Matched, done: set[str]) -> Iterator[Account]:
    """Accounts for what the source has and the target has not.

    Args:
      matched: Which leaves belong together.
      done: Labels of source leaves that have an account already.
    """
    for key, part in matched.rest.items():
      # A part of a stack may be missing, though others are accounted for.
      is_counter = key.role == Role.SCHEDULE_COUNT.value
      if not (is_counter and part.stored.label in done):
        yield self._of_state(key, part)
    reasons = {
      item.leaf.label: item.reason for item in self.source.state.dropped
    }
    for stored in matched.source_others:
      if stored.label not in done:
        yield self._other(stored, reasons.get(stored.label))
    for stored in self.source.counters().values():
      if self.weights_only and stored.label not in done:
        yield _dropped(stored, WEIGHTS_ONLY)
    for stored in self.source.stored():
      if stored.leaf.spec is None and stored.label not in done:
        yield _dropped(stored, f"{stored.leaf.value_type}: holds no array")
    yield from self._unnamed()

  def _of_state(self, key: Key, part: Part) -> Account:
    stored = part.stored
    asked = reason_to_leave_out(self.target.record, stored.label, key.path)
    if asked:
      return _dropped(stored, asked)
    if self.weights_only and key.role not in (*_MODEL_ROLES, Role.RNG.value):
      return _dropped(stored, WEIGHTS_ONLY)
    if is_rng(key):
      reason = self._rng_reason()
      if reason:
        return _dropped(stored, reason)
    if key.role == Role.SCHEDULE_COUNT.value:
      return self._schedule(key, part)
    return self._missing(key, part)

  def _missing(self, key: Key, part: Part) -> Difference:
    place = self._place(key)
    expected = f"expected as {place}" if place else f"it is the {key}"
    layer = f", layer {list(part.pins)}" if part.pins else ""
    return Difference(
      Kind.MISSING, part.stored.label, f"not in the target{layer}; {expected}"
    )

  def _place(self, key: Key) -> str:
    """Returns where MaxText would have a leaf; "" for another layout."""
    if self.target.step.layout != "maxtext":
      return ""
    path = key.path
    if self.forms.grouping and self.forms.b.mode == "scanned":
      path = _in_stack(path, self.forms.grouping)
    collection = ("params", *path)
    adam = ("opt_state",) + (("0",) * (self.source.state.optimizer == "adamw"))
    names = {
      Role.WEIGHT.value: ("params", *collection),
      Role.AUXILIARY.value: ("nnx_aux", "model", *path),
      Role.RNG.value: ("nnx_aux", "model", *path),
      Role.MOMENT.value: (*adam, key.slot, *collection),
      Role.COUNT.value: (*adam, "count"),
      Role.SCHEDULE_COUNT.value: ("opt_state", "2", "count"),
    }
    return f"items/{dotted(names[key.role])}" if key.role in names else ""

  def _schedule(self, key: Key, part: Part) -> Account:
    """Tunix's optimizer may keep no schedule: its count then says as much."""
    counter = self.target.state.schedule_count
    position = expected_position(self.source)
    if counter is None or position is None or not counter.sources:
      return self._missing(key, part)
    if counter.value != position.value:
      return Difference(
        Kind.VALUE,
        part.stored.label,
        f"{position.value}, and {counter.sources[0].label}, which the target "
        f"has in its place, is {counter.value}",
      )
    return _dropped(
      part.stored,
      f"the target has {counter.sources[0].label} in its place: "
      f"{counter.value}",
    )

  def _rng_reason(self) -> str:
    """Returns why all rng state may be left out, or "" if it may not be."""
    source, target = self.forms.a.mode, self.forms.b.mode
    if self.target.step.layout == "tunix":
      if source != target:
        return (
          f"rng state of a model that is {source} has no counterpart in one "
          f"that is {target}"
        )
      if self.source.step.layout != "tunix":
        return "Tunix's trainers have other rng keys"
      return ""
    if any(True for _ in self.target.state.with_role(Role.RNG)):
      return ""
    if self.target.state.optimizer is None:
      return WEIGHTS_ONLY
    if foreign := unreadable_key(self.source):
      return (
        f"MaxText's pre-training reads rng keys of {_READABLE_KEY[0]} only, "
        f"and {foreign.label} is none; it starts with fresh rng state"
      )
    if source != target:
      return (
        f"rng state of a model that is {source} has no counterpart in one "
        f"that is {target}; MaxText starts with fresh rng state"
      )
    return ""

  def _other(self, stored: StoredLeaf, reason: str | None) -> Account:
    path = stored.leaf.path.names
    asked = reason_to_leave_out(self.target.record, stored.label, ())
    if asked:
      return _dropped(stored, asked)
    is_model = bool(self.source.items) and stored.item is self.source.items[0]
    if self.weights_only and not is_model:
      return _dropped(stored, WEIGHTS_ONLY)
    if _ACCUMULATOR in path:
      return self._accumulator(stored)
    if reason is not None:
      return _dropped(stored, reason)
    name = path[-2] if path[-1] == "value" and path[1:] else path[-1]
    if name == "mini_step":
      return _dropped(
        stored, f"micro-steps since the last update{self._lost()}"
      )
    if stored.item.name == ASIDE:
      detail = "set aside in the source, and not in the target"
      return Difference(Kind.MISSING, stored.label, detail)
    return Difference(
      Kind.UNACCOUNTED, stored.label, "not in the target, and no rule says why"
    )

  def _mini_step(self) -> int:
    accumulation = self.source.state.accumulation
    return accumulation.mini_step if accumulation else 0

  def _lost(self) -> str:
    mini_step = self._mini_step()
    if not mini_step:
      return ": none"
    return f": the gradients of {mini_step} are LOST, the update is unfinished"

  def _accumulator(self, stored: StoredLeaf) -> Account:
    """Accumulated gradients hold nothing after an update: all are zero."""
    if self._mini_step():
      return _dropped(stored, f"accumulated gradients{self._lost()}")
    count = count_nonzero(stored, self.source, self.memory_limit)
    if count:
      return Difference(
        Kind.VALUE,
        stored.label,
        f"left out, though {count} accumulated gradients are not zero while "
        "mini_step is 0",
      )
    return _dropped(
      stored, "accumulated gradients after a complete update: all are zero"
    )

  def _unnamed(self) -> Iterator[Account]:
    """Accounts for arrays that the source's own metadata does not name."""
    for item in self.source.items:
      named = {leaf.name for leaf in item.leaves}
      for name in self.source.oracles[item.directory].arrays:
        if name not in named:
          yield Dropped(
            f"{item.name}/{name}",
            "the source's _METADATA does not name it: no trainer reads it",
            0,
          )


def unreadable_key(side: Side) -> StoredLeaf | None:
  """Returns an rng key that MaxText's pre-training cannot read, or None."""
  impl, width = _READABLE_KEY
  for key, stored in side.state.with_role(Role.RNG):
    if key.path[-1] != "key":
      continue
    assert stored.leaf.spec is not None
    recorded = stored.leaf.random_key_impl
    if recorded is not None and recorded != impl:
      return stored
    if stored.leaf.spec.shape[-1:] != (width,):
      return stored
  return None


def _in_stack(path: tuple[str, ...], grouping: Grouping) -> tuple[str, ...]:
  """Returns the path of the stack that a layer's leaf belongs to."""
  found = grouping.split_unscanned(path) if path else None
  return path if found is None else found.group.scanned + found.suffix


def _dropped(stored: StoredLeaf, reason: str) -> Dropped:
  spec = stored.leaf.spec
  return Dropped(stored.label, reason, 0 if spec is None else spec.num_bytes)
