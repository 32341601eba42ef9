"""Accounts for counters that follow from the source by a rule."""

from collections.abc import Iterator

from relayout.comparison.side import Side
from relayout.errors import CorruptCheckpointError, LayoutError
from relayout.layouts.state import Counter, Role, StateKey, StoredLeaf
from relayout.verify.account import Account, Derived, Difference, Kind
from relayout.verify.scalars import read_scalar

_STEP = StateKey(Role.STEP)
_SCHEDULE = StateKey(Role.SCHEDULE_COUNT)


def counter_accounts(source: Side, target: Side) -> Iterator[Account]:
  """Accounts for the step and the schedule's position of the target.

  Raises:
    CorruptCheckpointError: If a counter of the source can't be read.
  """
  found = target.counters()
  yield from _counter(_STEP, source, target, found.get(_STEP))
  if _SCHEDULE in target.state.leaves and _SCHEDULE in source.state.leaves:
    return  # an array like others
  stored = target.state.leaves.get(_SCHEDULE) or found.get(_SCHEDULE)
  if stored is None and _SCHEDULE in source.state.leaves:
    return  # a leaf that is missing, as others may be
  if stored is None and target.step.layout == "tunix":
    return  # Tunix's optimizer may well keep none
  is_count = stored is not None and stored is target.state.leaves.get(
    StateKey(Role.COUNT)
  )
  if not is_count:
    yield from _counter(_SCHEDULE, source, target, stored)


def expected_updates(source: Side) -> int | None:
  """Returns the number of updates in the source, or None.

  Raises:
    CorruptCheckpointError: If relayout and TensorStore read other numbers.
  """
  counter = source.state.step
  return None if counter is None else _checked(counter, source)


def expected_position(source: Side) -> Counter | None:
  """Returns the position of the source's schedule, or None."""
  stored = source.state.leaves.get(_SCHEDULE)
  if stored is None:
    return source.state.schedule_count
  value = read_scalar(stored, source).value
  return Counter(value, "the schedule's position", (stored,))


def scalar_account(
  stored: StoredLeaf,
  target: Side,
  rule: str,
  expected: int,
  sources: tuple[str, ...],
) -> Account:
  """Accounts for a target leaf that must hold one integer."""
  try:
    found = read_scalar(stored, target)
  except LayoutError as error:
    detail = str(error).removeprefix(f"{stored.label}: ")
    return Difference(Kind.SHAPE, stored.label, detail, sources)
  except CorruptCheckpointError as error:
    detail = f"can't be read: {error}"
    return Difference(Kind.UNREADABLE, stored.label, detail, sources)
  dtype = _dtype(stored, target)
  if found.dtype != dtype and not target.record.options.get("like"):
    detail = f"data type {found.dtype}, expected {dtype}"
    return Difference(Kind.DTYPE, stored.label, detail, sources)
  if found.value != expected:
    detail = f"{found.value}, expected {expected}: {rule}"
    return Difference(Kind.VALUE, stored.label, detail, sources)
  return Derived(sources, stored.label, rule, expected, found.value)


def _dtype(stored: StoredLeaf, target: Side) -> str:
  """Returns the type that a layout gives a counter."""
  is_step = stored.leaf.path.names[0] == "step"
  return "uint32" if is_step and target.step.layout == "tunix" else "int32"


def _counter(
  key: StateKey, source: Side, target: Side, stored: StoredLeaf | None
) -> Iterator[Account]:
  """Accounts for one counter; nothing if neither side has it."""
  counter = source.state.step
  if key == _SCHEDULE:
    counter = expected_position(source) or source.state.schedule_count
  if counter is None:
    if stored is not None:
      detail = f"the source has nothing that says the {key}"
      yield Difference(Kind.EXTRA, stored.label, detail)
    return
  labels = tuple(leaf.label for leaf in counter.sources)
  expected = _checked(counter, source)
  if stored is None:
    name = target.items[0].name if target.items else target.step.path.name
    detail = f"missing; expected {expected}: {counter.rule}"
    yield Difference(Kind.MISSING, f"{name}/{_name(key)}", detail, labels)
    return
  yield scalar_account(stored, target, counter.rule, expected, labels)


def _name(key: StateKey) -> str:
  return "step" if key == _STEP else "opt_state.2.count"


def _checked(counter: Counter, source: Side) -> int:
  """Returns the counter's value, as TensorStore reads it.

  Raises:
    CorruptCheckpointError: If relayout itself read another value.
  """
  if counter.sources:
    stored = counter.sources[0]
    read = read_scalar(stored, source)
    if read.value != counter.value:
      raise CorruptCheckpointError(
        f"{stored.item.directory}: {stored.leaf.name}: TensorStore reads "
        f"{read.value}, relayout {counter.value}"
      )
  return counter.value
