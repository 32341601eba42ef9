"""Compares runs, steps or items."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from relayout.comparison.forms import Declared
from relayout.comparison.numbering import numbered
from relayout.comparison.side import Side, read_side
from relayout.comparison.step_pairs import Numbered, pair_steps
from relayout.comparison.steps import Step, Steps, find_steps
from relayout.diff.report import DiffReport, StepDiff
from relayout.diff.step import Progress, diff_step
from relayout.errors import LayoutError, OptionError

MEMORY_LIMIT = 256 << 20
"""Bytes of array values to hold at once, about."""


def diff(
  a: Path,
  b: Path,
  *,
  step: int | None = None,
  declared: Declared | None = None,
  values: bool = True,
  hashes: bool = True,
  memory_limit: int = MEMORY_LIMIT,
  progress: Progress | None = None,
) -> DiffReport:
  """Says in what two checkpoints differ.

  Of two runs, the steps with equal numbers of updates are compared.  A step
  that is named by itself is compared with the step of the other's run that
  belongs to it.

  Args:
    a: A run's checkpoint directory, a step, or an item.
    b: Another.
    step: Compare only this step of the first run, by its directory's number.
    declared: What is known of how layers are stored.
    values: Whether to compare values.
    hashes: Whether to hash them, for the report.
    memory_limit: Bytes of array values to hold at once, about.
    progress: Is told in words what was just compared.

  Raises:
    OptionError: If there is no such step, or nothing to compare it with.
    RelayoutError: If either side is unusable; differences are no errors.
  """
  started = time.monotonic()
  paired = _pair(find_steps(a), find_steps(b), step)
  reports: list[StepDiff] = []
  for first, second in paired.pairs:
    sides = _read(first, second)
    reports.append(
      diff_step(
        *sides,
        declared or Declared(),
        values=values,
        hashes=hashes,
        memory_limit=memory_limit,
        progress=progress or _silent,
      )
    )
  return DiffReport(
    a=str(a),
    b=str(b),
    steps=tuple(reports),
    unpaired=paired.unpaired,
    seconds=time.monotonic() - started,
  )


def _silent(message: str) -> None:
  del message


@dataclasses.dataclass(frozen=True, slots=True)
class _Paired:
  """Which steps to compare, and those that are only on one side, in words."""

  pairs: tuple[tuple[Step, Step], ...]
  unpaired: tuple[str, ...] = ()


def _pair(a: Steps, b: Steps, number: int | None) -> _Paired:
  first, second = a.with_number(number), b.steps
  if len(first) == len(second) == 1:
    return _Paired(((first[0], second[0]),))
  pairs = pair_steps(_numbers(first, second), _numbers(second, first))
  found = tuple((first[i], second[j]) for i, j in pairs)
  # A step that was named is compared with its counterpart in a run.
  is_named = number is not None or a.kind != "run" or b.kind != "run"
  if is_named and not found:
    raise OptionError(
      f"no step of {a.path} and of {b.path} belong together, by updates or by "
      "number. Name one step on each side"
    )
  if is_named:
    return _Paired(found)
  known = {step.path for pair in found for step in pair}
  return _Paired(found, tuple(_unpaired((*first, *second), known)))


def _unpaired(steps: Sequence[Step], known: set[Path]) -> Iterator[str]:
  for step in steps:
    if step.path not in known:
      yield f"{step.path}: no step of the other side belongs to it"


def _numbers(steps: Sequence[Step], others: Sequence[Step]) -> list[Numbered]:
  other = others[0].layout
  return [numbered(_read_leniently(step), other) for step in steps]


def _read_leniently(step: Step) -> Side:
  try:
    return read_side(step)
  except LayoutError:
    return read_side(step, by_layout=False)


def _read(a: Step, b: Step) -> tuple[Side, Side]:
  """Reads two steps; where a layout has no rules for them, by names alone.

  Raises:
    LayoutError: If a step does not follow its layout, and the other has another
      layout or items.
  """
  try:
    return read_side(a), read_side(b)
  except LayoutError:
    if a.layout != b.layout or a.items.keys() != b.items.keys():
      raise
    return read_side(a, by_layout=False), read_side(b, by_layout=False)
