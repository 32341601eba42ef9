"""What verifying found: plain data, and as JSON."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from relayout.verify.account import (
  Account,
  Derived,
  Difference,
  Dropped,
  Held,
  Way,
)

_CAST = "cast"
_NAMES = (*map(str, Way), _CAST, "derived", "dropped", "differences")
_NAME_OF_TYPE = {
  Derived: "derived",
  Dropped: "dropped",
  Difference: "differences",
}


@dataclasses.dataclass(frozen=True, slots=True)
class StepReport:
  """The accounts of one pair of steps.

  Attributes:
    source: The source's step or item directory.
    target: The target's step or item directory.
    updates: Optimizer updates in the source, or None if it does not say.
    accounts: One or more for every leaf of either side.
    num_bytes: Size of the target's values that were compared, bytes.
    seconds: Wall time.
    notes: What the user should know.
  """

  source: str
  target: str
  updates: int | None
  accounts: tuple[Account, ...]
  num_bytes: int
  seconds: float
  notes: tuple[str, ...] = ()

  @property
  def differences(self) -> tuple[Difference, ...]:
    """The differences among the accounts."""
    return tuple(x for x in self.accounts if isinstance(x, Difference))


@dataclasses.dataclass(frozen=True, slots=True)
class VerifyReport:
  """A whole verification.

  Attributes:
    source: The source, as it was given.
    target: The target, as it was given.
    steps: Pairs of steps, in the order of the source.
    unpaired: Steps of either side that have no counterpart.
    seconds: Wall time.
    notes: What the user should know.
  """

  source: str
  target: str
  steps: tuple[StepReport, ...]
  unpaired: tuple[Difference, ...]
  seconds: float
  notes: tuple[str, ...] = ()

  @property
  def is_ok(self) -> bool:
    """Whether every leaf of every step is accounted for."""
    return bool(self.steps) and not any(self.differences())

  def differences(self) -> Iterator[Difference]:
    """Yields all differences."""
    yield from self.unpaired
    for step in self.steps:
      yield from step.differences

  def totals(self) -> dict[str, int]:
    """Returns the number of accounts of each kind, over all steps."""
    result = dict.fromkeys(_NAMES, 0)
    for step in self.steps:
      for kind, count in counts(step.accounts).items():
        result[kind] += count
    result["differences"] += len(self.unpaired)
    return result

  def to_json(self) -> dict[str, Any]:
    """Returns the report as JSON values."""
    return {
      "source": self.source,
      "target": self.target,
      "is_ok": self.is_ok,
      "totals": self.totals(),
      "steps": [_step_json(step) for step in self.steps],
      "unpaired": [_account_json(account) for account in self.unpaired],
      "seconds": round(self.seconds, 6),
      "notes": list(self.notes),
    }


def counts(accounts: tuple[Account, ...]) -> dict[str, int]:
  """Returns the number of accounts of each kind."""
  result = dict.fromkeys(_NAMES, 0)
  for account in accounts:
    result[_name(account)] += 1
  return result


def _step_json(step: StepReport) -> dict[str, Any]:
  value: dict[str, Any] = {
    "source": step.source,
    "target": step.target,
    "updates": step.updates,
    "counts": counts(step.accounts),
    "num_bytes": step.num_bytes,
    "seconds": round(step.seconds, 6),
    "notes": list(step.notes),
  }
  for name in _NAMES:
    value[name] = []
  for account in step.accounts:
    value[_name(account)].append(_account_json(account))
  return value


def _name(account: Account) -> str:
  """Returns the kind of an account, as the report calls it."""
  if isinstance(account, Held):
    return _CAST if account.cast else str(account.way)
  return _NAME_OF_TYPE[type(account)]


def _account_json(account: Account) -> dict[str, Any]:
  value = dataclasses.asdict(account)
  value.pop("accounts_for", None)
  return value
