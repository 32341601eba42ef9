"""Verifies a run, a step or an item."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from relayout.errors import OptionError
from relayout.verify.account import Difference, Kind
from relayout.verify.candidates import (
  SourceStep,
  TargetStep,
  find_source,
  find_target,
)
from relayout.verify.oracle import open_oracle
from relayout.verify.report import VerifyReport
from relayout.verify.scalars import updates_of_source, updates_of_target
from relayout.verify.step import Progress, verify_step
from relayout.verify.step_pairs import Numbered, Pairs, pair_steps

MEMORY_LIMIT = 256 << 20
"""Bytes of array values to hold at once, about."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Paired:
  """The steps of both sides, and which belong together."""

  sources: Sequence[SourceStep]
  targets: Sequence[TargetStep]
  source_numbers: Sequence[Numbered]
  target_numbers: Sequence[Numbered]
  pairs: Pairs


def verify(
  source: Path,
  target: Path,
  *,
  step: int | None = None,
  memory_limit: int = MEMORY_LIMIT,
  progress: Progress | None = None,
) -> VerifyReport:
  """Compares a Tunix checkpoint with what became of it in MaxText's layout.

  Nothing of the conversion is involved: leaves are matched by the rules of
  both layouts, values are read with TensorStore and compared bit by bit.

  Args:
    source: A run's checkpoint directory, a step, or an item of weights.
    target: A checkpoints directory, one of its steps, or an item `items`.
    step: Verify only this step of the source, by its directory's number.
    memory_limit: Bytes of array values to hold at once, about.
    progress: Is told in words what was just compared.

  Raises:
    RelayoutError: If either side is unusable; differences are no errors.
  """
  started = time.monotonic()
  paired = _pair(find_source(source), find_target(target))
  pairs = _selected(paired, step)
  reports = [
    verify_step(
      paired.sources[i],
      paired.targets[j],
      memory_limit=memory_limit,
      progress=progress or _silent,
    )
    for i, j in pairs
  ]
  return VerifyReport(
    source=str(source),
    target=str(target),
    steps=tuple(reports),
    unpaired=tuple(_unpaired(paired, step)),
    seconds=time.monotonic() - started,
  )


def _silent(message: str) -> None:
  del message


def _pair(
  sources: Sequence[SourceStep], targets: Sequence[TargetStep]
) -> _Paired:
  source_numbers = [_source_numbers(found) for found in sources]
  target_numbers = [_target_numbers(found) for found in targets]
  pairs = pair_steps(source_numbers, target_numbers)
  return _Paired(sources, targets, source_numbers, target_numbers, pairs)


def _source_numbers(step: SourceStep) -> Numbered:
  optimizer = None if step.optimizer is None else open_oracle(step.optimizer)
  updates = updates_of_source(optimizer)
  return Numbered(step.number, None if updates is None else updates.value)


def _target_numbers(step: TargetStep) -> Numbered:
  updates = updates_of_target(open_oracle(step.item))
  return Numbered(step.number, None if updates is None else updates.value)


def _selected(paired: _Paired, step: int | None) -> Pairs:
  """Returns the pairs of the step that was asked for, or all.

  Raises:
    OptionError: If the source has no such step.
  """
  if step is None:
    return paired.pairs
  numbers = [found.number for found in paired.sources]
  if step not in numbers:
    raise OptionError(
      f"--step={step}: SOURCE has no such step; it has "
      f"{', '.join(map(str, numbers))}"
    )
  return [(i, j) for i, j in paired.pairs if numbers[i] == step]


def _unpaired(paired: _Paired, step: int | None) -> Iterator[Difference]:
  """Yields the steps that have no counterpart."""
  matched = {i for i, _ in paired.pairs}, {j for _, j in paired.pairs}
  for i, source in enumerate(paired.sources):
    if i not in matched[0] and step in (None, source.number):
      yield Difference(
        Kind.STEP,
        str(source.path),
        f"{_describe(paired.source_numbers[i])}: no step of the target is made "
        "from it. To verify other steps alone, pass --step=N",
      )
  for j, target in enumerate(paired.targets):
    if j not in matched[1]:
      yield Difference(
        Kind.STEP,
        str(target.path),
        f"{_describe(paired.target_numbers[j])}: made from no step of the "
        "source. To verify other steps alone, name one step as TARGET",
      )


def _describe(step: Numbered) -> str:
  updates = "unknown" if step.updates is None else step.updates
  return f"step {step.number}, updates: {updates}"
