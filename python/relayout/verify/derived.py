"""Accounts for target leaves that are no copy, but follow from the source."""

from collections.abc import Mapping

from relayout.errors import CorruptCheckpointError, LayoutError
from relayout.layouts import maxtext
from relayout.layouts.state import Counter, Role, State, StateKey, StoredLeaf
from relayout.tree.key_path import dotted
from relayout.verify.account import Account, Derived, Difference, Kind
from relayout.verify.scalars import Scalar, read_scalar, updates_of_source
from relayout.verify.sides import Side

_STATELESS = dotted(maxtext.STATELESS_MEMBER.names)


def derive(
  source: Side, target: Side, counters: Mapping[StateKey, StoredLeaf]
) -> list[Account]:
  """Accounts for the counters and the empty leaves of the target.

  Args:
    source: The source.
    target: The target.
    counters: Leaves of the target that no source leaf equals as they are.
  """
  state = source.state
  accounts = []
  for key, counter in (
    (StateKey(Role.STEP), state.step),
    (StateKey(Role.SCHEDULE_COUNT), state.schedule_count),
  ):
    account = _counter(key, counter, counters.get(key), source, target)
    if account is not None:
      accounts.append(account)
  return accounts + _empty_leaves(state, target)


def _counter(
  key: StateKey,
  counter: Counter | None,
  stored: StoredLeaf | None,
  source: Side,
  target: Side,
) -> Account | None:
  """Accounts for one counter; None if neither side has it."""
  if counter is None:
    if stored is None:
      return None
    detail = f"the source has nothing that says the {key}"
    return Difference(Kind.EXTRA, stored.label, detail)
  labels = tuple(leaf.label for leaf in counter.sources)
  if stored is None:
    name = dotted(maxtext.place(key, source.state.optimizer).names)
    detail = f"missing; expected {counter.value}: {counter.rule}"
    label = f"{maxtext.ITEM}/{name}"
    return Difference(Kind.MISSING, label, detail, labels)
  expected = _expected(key, counter, source)
  return _compare(stored, counter.rule, expected, labels, target)


def _expected(key: StateKey, counter: Counter, source: Side) -> int:
  """Returns the counter's value, as TensorStore reads it.

  Raises:
    CorruptCheckpointError: If relayout itself read another value.
  """
  read: Scalar | None = None
  if key.role is Role.STEP:
    read = updates_of_source(source.optimizer)
  elif counter.sources:
    leaf = counter.sources[0]
    read = read_scalar(source.oracle(leaf), leaf.leaf.name)
  if read is not None and read.value != counter.value:
    raise CorruptCheckpointError(
      f"{read.name}: TensorStore reads {read.value} for the {key}, relayout "
      f"{counter.value}"
    )
  return counter.value


def _compare(
  stored: StoredLeaf,
  rule: str,
  expected: int,
  labels: tuple[str, ...],
  target: Side,
) -> Account:
  try:
    found = read_scalar(target.oracle(stored), stored.leaf.name)
  except LayoutError as error:
    detail = str(error).removeprefix(f"{stored.label}: ")
    return Difference(Kind.SHAPE, stored.label, detail, labels)
  except CorruptCheckpointError as error:
    detail = f"can't be read: {error}"
    return Difference(Kind.UNREADABLE, stored.label, detail, labels)
  if found.dtype != maxtext.COUNT_DTYPE:
    detail = f"data type {found.dtype}, expected {maxtext.COUNT_DTYPE}"
    return Difference(Kind.DTYPE, stored.label, detail, labels)
  if found.value != expected:
    detail = f"{found.value}, expected {expected}: {rule}"
    return Difference(Kind.VALUE, stored.label, detail, labels)
  return Derived(labels, stored.label, rule, expected, found.value)


def _empty_leaves(state: State, target: Side) -> list[Account]:
  """Accounts for leaves without an array: AdamW has one, and only one."""
  empty = {
    stored.leaf.name: stored
    for stored in target.stored()
    if stored.leaf.spec is None
  }
  accounts: list[Account] = []
  member = empty.pop(_STATELESS, None)
  if state.optimizer == "adamw":
    accounts.append(_stateless_member(member))
  elif member is not None:
    empty[_STATELESS] = member
  for stored in empty.values():
    detail = f"an empty {stored.leaf.value_type} that no rule explains"
    accounts.append(Difference(Kind.EXTRA, stored.label, detail))
  return accounts


def _stateless_member(stored: StoredLeaf | None) -> Account:
  label = f"{maxtext.ITEM}/{_STATELESS}"
  rule = "AdamW's weight decay keeps no state: an empty member of the list"
  if stored is None:
    detail = f"missing; expected a leaf that is None: {rule}"
    return Difference(Kind.MISSING, label, detail)
  if stored.leaf.value_type != "None":
    detail = f"an empty {stored.leaf.value_type}, expected None: {rule}"
    return Difference(Kind.METADATA, label, detail)
  return Derived((), label, rule, None, None)
