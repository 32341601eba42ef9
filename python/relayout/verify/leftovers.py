"""Judges the source leaves that the target does not hold.

The rules are stated here once more, apart from those of the conversion: a leaf
may be left out for one of these reasons only.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from relayout.layouts import maxtext, stacking
from relayout.layouts.state import Role, StateKey, StoredLeaf
from relayout.tree.key_path import dotted
from relayout.verify.account import Account, Difference, Dropped, Kind
from relayout.verify.nonzero import count_nonzero
from relayout.verify.scalars import read_scalar
from relayout.verify.sides import Side

WEIGHTS_ONLY = "the target holds weights only"
_ACCUMULATOR = "acc_grads"
_READABLE_KEY = ("unsafe_rbg", 4)
"""What MaxText's pre-training can read: implementation, words in a key."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judge:
  """Decides whether leaves may be left out.

  Attributes:
    source: The source.
    target: The target.
    weights_only: Whether the target has no optimizer and no step at all.
    memory_limit: Bytes to hold at once, about.
  """

  source: Side
  target: Side
  weights_only: bool
  memory_limit: int

  def of_state(
    self, rest: Iterable[tuple[StateKey, StoredLeaf]]
  ) -> Iterator[Account]:
    """Accounts for leaves of the source's state."""
    rng_reason = self._rng_reason()
    for key, stored in rest:
      if key.role is Role.RNG and rng_reason:
        yield _dropped(stored, rng_reason)
      else:
        yield self._missing(key, stored)

  def of_others(self, accounted: set[str]) -> Iterator[Account]:
    """Accounts for leaves that are no part of the source's state.

    Args:
      accounted: Labels of the leaves that have an account already.
    """
    reasons = {
      item.leaf.label: item.reason for item in self.source.state.dropped
    }
    for stored in self.source.stored():
      if stored.label not in accounted:
        yield self._other(stored, reasons.get(stored.label))
    yield from self._unnamed()

  def _missing(self, key: StateKey, stored: StoredLeaf) -> Difference:
    path = key.path
    layer = stacking.split_layer(path) if path else None
    if layer is not None and self.target.mode == "scanned":
      path = layer.template
    place = maxtext.place(
      dataclasses.replace(key, path=path), self.source.state.optimizer
    )
    name = dotted(place.names)
    return Difference(
      Kind.MISSING,
      stored.label,
      f"not in the target; expected as {maxtext.ITEM}/{name}",
    )

  def _rng_reason(self) -> str:
    """Returns why all rng state may be left out, or "" if it may not be."""
    if any(True for _ in self.target.state.with_role(Role.RNG)):
      return ""
    if self.target.state.optimizer is None:
      return WEIGHTS_ONLY
    if foreign := unreadable_key(self.source):
      return (
        f"MaxText's pre-training reads rng keys of {_READABLE_KEY[0]} only, "
        f"and {foreign.label} is none; it starts with fresh rng state"
      )
    if self.source.mode != self.target.mode:
      return (
        f"rng state of a model that is {self.source.mode} has no counterpart "
        f"in one that is {self.target.mode}; MaxText starts with fresh rng "
        "state"
      )
    return ""

  def _other(self, stored: StoredLeaf, reason: str | None) -> Account:
    path = stored.leaf.path.names
    if stored.leaf.spec is None:
      return _dropped(stored, f"{stored.leaf.value_type}: holds no array")
    if self.weights_only and stored.item is not self.source.items[0]:
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
    if name == "count" and self._is_injected(stored):
      return self._injected(stored)
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
    count = count_nonzero(
      self.source.oracle(stored), stored.leaf.name, self.memory_limit
    )
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

  def _is_injected(self, stored: StoredLeaf) -> bool:
    """Whether a count belongs to `inject_hyperparams`."""
    path = stored.leaf.path.names
    parent = path[: -2 if path[-1] == "value" else -1]
    sibling = (*parent, "inner_state")
    return any(
      leaf.path.names[: len(sibling)] == sibling for leaf in stored.item.leaves
    )

  def _injected(self, stored: StoredLeaf) -> Account:
    """It counts updates, and so does the optimizer's count, which goes on."""
    count = self.source.state.leaves.get(StateKey(Role.COUNT))
    found = self._value(stored)
    expected = None if count is None else self._value(count)
    if count is None or found != expected:
      return Difference(
        Kind.VALUE,
        stored.label,
        f"{found} updates by inject_hyperparams, {expected} by the optimizer",
      )
    return _dropped(
      stored, f"count of inject_hyperparams, the same as {count.label}: {found}"
    )

  def _value(self, stored: StoredLeaf) -> int:
    return read_scalar(self.source.oracle(stored), stored.leaf.name).value

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


def _dropped(stored: StoredLeaf, reason: str) -> Dropped:
  spec = stored.leaf.spec
  return Dropped(stored.label, reason, 0 if spec is None else spec.num_bytes)
