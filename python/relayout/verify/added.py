"""Accounts for target leaves that no source leaf equals."""

import dataclasses
from collections.abc import Iterator

from relayout.comparison.keys import Key
from relayout.comparison.leaves import Part
from relayout.comparison.side import Side
from relayout.comparison.steps import ASIDE
from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import StoredLeaf
from relayout.tree.key_path import KeyPath
from relayout.verify.account import Account, Derived, Difference, Kind
from relayout.verify.counters import (
  expected_position,
  expected_updates,
  scalar_account,
)
from relayout.verify.derived_rng import derived_rng
from relayout.verify.matching import Matched, is_rng
from relayout.verify.scalars import count_nonzero

_STATELESS = ("opt_state", "1")
"""AdamW's weight decay in MaxText's list of members."""

_LEARNING_RATE = ("hyperparams", "learning_rate")
_VARIABLE_LEVEL = "value"


@dataclasses.dataclass(frozen=True, slots=True)
class Added:
  """Says of leaves that the target adds by which rule it does.

  Attributes:
    source: The source.
    target: The target.
    memory_limit: Bytes to hold at once, about.
  """

  source: Side
  target: Side
  memory_limit: int

  def accounts(self, matched: Matched) -> Iterator[Account]:
    """Accounts for what the target has and the source has not."""
    done: set[str] = set()
    for key, part in matched.extra.items():
      if part.stored.label not in done:
        done.add(part.stored.label)
        yield self._of_state(key, part)
    for stored in matched.target_others:
      yield self._other(stored)
    yield from self._empty_leaves()

  def _of_state(self, key: Key, part: Part) -> Account:
    stored = part.stored
    if is_rng(key):
      return derived_rng(key, stored, self.source, self.target)
    return Difference(Kind.EXTRA, stored.label, f"the source has no {key}")

  def _other(self, stored: StoredLeaf) -> Account:
    """Accounts for a leaf of the wrappers around a Tunix optimizer."""
    if stored.item.name == ASIDE:
      detail = "set aside, and the source has no such leaf"
      return Difference(Kind.EXTRA, stored.label, detail)
    path = _without_level(stored.leaf.path.names)
    try:
      found = self._wrapper_leaf(path, stored)
    except CorruptCheckpointError as error:
      return Difference(Kind.UNREADABLE, stored.label, str(error))
    if found is not None:
      return found
    detail = "no rule says what it is, and the source has no such leaf"
    return Difference(Kind.EXTRA, stored.label, detail)

  def _wrapper_leaf(self, path: KeyPath, stored: StoredLeaf) -> Account | None:
    if self.target.step.layout != "tunix":
      return None
    if "acc_grads" in path:
      return self._zeros(stored)
    if path[-2:] == _LEARNING_RATE:
      rule = "a learning rate that its schedule sets before it is used"
      return Derived((), stored.label, rule, None, None)
    step = self.source.state.step
    labels = tuple(leaf.label for leaf in step.sources) if step else ()
    if path[-1] == "mini_step":
      rule = "no micro-step since the last update"
      return scalar_account(stored, self.target, rule, 0, labels)
    updates = expected_updates(self.source)
    if updates is not None and path[-1] in ("step", "gradient_step"):
      rule = "number of updates"
      return scalar_account(stored, self.target, rule, updates, labels)
    if updates is not None and path[-1] == "count":
      return self._count(stored, updates, labels)
    return None

  def _count(
    self, stored: StoredLeaf, updates: int, labels: tuple[str, ...]
  ) -> Account:
    """Accounts for a count of `inject_hyperparams`, or of its schedule."""
    found = scalar_account(
      stored, self.target, "inject_hyperparams counts updates", updates, labels
    )
    position = expected_position(self.source)
    if isinstance(found, Derived) or position is None:
      return found
    sources = tuple(leaf.label for leaf in position.sources)
    other = scalar_account(
      stored, self.target, position.rule, position.value, sources
    )
    return other if isinstance(other, Derived) else found

  def _zeros(self, stored: StoredLeaf) -> Account:
    count = count_nonzero(stored, self.target, self.memory_limit)
    if count:
      detail = f"{count} elements are not zero, and no gradient is accumulated"
      return Difference(Kind.VALUE, stored.label, detail)
    rule = "no gradient is accumulated after a complete update: zeros"
    return Derived((), stored.label, rule, 0, 0)

  def _empty_leaves(self) -> Iterator[Account]:
    """Accounts for leaves without an array, and for AdamW's if it lacks."""
    known = {
      (stored.item.name, stored.leaf.path.names): stored.leaf.value_type
      for stored in self.source.stored()
      if stored.leaf.spec is None
    }
    has_member = False
    for stored in self.target.stored():
      if stored.leaf.spec is not None:
        continue
      path, value_type = stored.leaf.path.names, stored.leaf.value_type
      if self._has_stateless_member() and path == _STATELESS:
        has_member = True
        yield _stateless_member(stored)
      elif known.get((stored.item.name, path)) == value_type:
        yield Derived(
          (stored.label,),
          stored.label,
          f"empty as before: {value_type}",
          None,
          None,
        )
      else:
        detail = f"an empty {value_type} that no rule explains"
        yield Difference(Kind.EXTRA, stored.label, detail)
    if self._has_stateless_member() and not has_member:
      label = f"{self.target.items[0].name}/{'.'.join(_STATELESS)}"
      detail = f"missing; expected a leaf that is None: {_STATELESS_RULE}"
      yield Difference(Kind.MISSING, label, detail)

  def _has_stateless_member(self) -> bool:
    """Whether the target must have the empty member of AdamW's list."""
    return (
      self.target.step.layout == "maxtext"
      and self.target.state.optimizer == "adamw"
    )


_STATELESS_RULE = (
  "AdamW's weight decay keeps no state: an empty member of the list"
)


def _stateless_member(stored: StoredLeaf) -> Account:
  value_type = stored.leaf.value_type
  if value_type != "None":
    detail = f"an empty {value_type}, expected None: {_STATELESS_RULE}"
    return Difference(Kind.METADATA, stored.label, detail)
  return Derived((), stored.label, _STATELESS_RULE, None, None)


def _without_level(path: KeyPath) -> KeyPath:
  """Removes the level of an `nnx.Variable`."""
  return path[:-1] if path[1:] and path[-1] == _VARIABLE_LEVEL else path
