"""Verifies a run, a step or an item."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from relayout.comparison.forms import Declared
from relayout.comparison.numbering import numbered
from relayout.comparison.side import read_side
from relayout.comparison.step_pairs import Numbered, Pairs, pair_steps
from relayout.comparison.steps import Step, Steps, find_steps
from relayout.errors import LayoutError
from relayout.layouts.state import LayoutName
from relayout.verify.account import Difference, Kind
from relayout.verify.report import VerifyReport
from relayout.verify.step import verify_step
from relayout.verify.target import read_target
from relayout.verify.values import Progress

MEMORY_LIMIT = 256 << 20
"""Bytes of array values to hold at once, about."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Paired:
  """The steps of both sides, and which belong together."""

  sources: Sequence[Step]
  targets: Sequence[Step]
  source_numbers: Sequence[Numbered]
  target_numbers: Sequence[Numbered]
  pairs: Pairs


def verify(
  source: Path,
  target: Path,
  *,
  step: int | None = None,
  declared: Declared | None = None,
  memory_limit: int = MEMORY_LIMIT,
  progress: Progress | None = None,
) -> VerifyReport:
  """Compares a checkpoint with what became of it in another layout or form.

  Nothing of the conversion is involved: leaves are matched by the rules of
  both layouts, values are read with TensorStore and compared bit by bit.

  Args:
    source: A run's checkpoint directory, a step, or an item.
    target: A checkpoints directory, one of its steps, or an item.
    step: Verify only this step of the source, by its directory's number.
    declared: What is known of how layers are stored, where the target does not
      record it; the source is the first side.
    memory_limit: Bytes of array values to hold at once, about.
    progress: Is told in words what was just compared.

  Raises:
    RelayoutError: If either side is unusable; differences are no errors.
  """
  started = time.monotonic()
  paired = _pair(find_steps(source), find_steps(target), step)
  reports = [
    verify_step(
      paired.sources[i],
      paired.targets[j],
      declared or Declared(),
      memory_limit=memory_limit,
      progress=progress or _silent,
    )
    for i, j in paired.pairs
  ]
  return VerifyReport(
    source=str(source),
    target=str(target),
    steps=tuple(reports),
    unpaired=tuple(_unpaired(paired, is_one_step=step is not None)),
    seconds=time.monotonic() - started,
  )


def _silent(message: str) -> None:
  del message


def _pair(source: Steps, target: Steps, number: int | None) -> _Paired:
  """Returns which steps belong together.

  Raises:
    OptionError: If the source has no step of this number.
  """
  sources = _known(source, "SOURCE", source.with_number(number))
  targets = _known(target, "TARGET", target.steps)
  source_numbers = [
    _source_numbers(step, targets[0].layout) for step in sources
  ]
  target_numbers = [
    numbered(read_target(step).side, sources[0].layout) for step in targets
  ]
  pairs = pair_steps(source_numbers, target_numbers)
  return _Paired(sources, targets, source_numbers, target_numbers, pairs)


def _known(
  found: Steps, name: str, steps: tuple[Step, ...]
) -> tuple[Step, ...]:
  """Returns the steps, all of one known layout.

  Raises:
    LayoutError: If one is in none, or two are in different ones.
  """
  for step in steps:
    if step.layout == "unknown":
      raise LayoutError(
        f"{step.path}: {name} holds {', '.join(step.items)}; a Tunix step "
        "holds `model_params` and `optimizer_state`, a step of MaxText `items`"
      )
    if step.layout != steps[0].layout:
      raise LayoutError(
        f"{found.path}: {name} holds steps in the layouts of Tunix and of "
        "MaxText. Name one step"
      )
  return steps


def _source_numbers(step: Step, other: LayoutName) -> Numbered:
  """Returns the numbers of a step, whose optimizer may be of any kind."""
  try:
    return numbered(read_side(step), other)
  except LayoutError:
    return numbered(read_side(step, weights_only=True), other)


def _unpaired(paired: _Paired, *, is_one_step: bool) -> Iterator[Difference]:
  """Yields the steps that have no counterpart."""
  matched = {i for i, _ in paired.pairs}, {j for _, j in paired.pairs}
  for i, source in enumerate(paired.sources):
    if i not in matched[0]:
      yield Difference(
        Kind.STEP,
        str(source.path),
        f"{_describe(paired.source_numbers[i])}: no step of the target is made "
        "from it. To verify other steps alone, pass --step=N",
      )
  for j, target in enumerate(paired.targets):
    if j not in matched[1] and not is_one_step:
      yield Difference(
        Kind.STEP,
        str(target.path),
        f"{_describe(paired.target_numbers[j])}: made from no step of the "
        "source. To verify other steps alone, name one step as TARGET",
      )


def _describe(step: Numbered) -> str:
  updates = "unknown" if step.updates is None else step.updates
  return f"step {step.number}, updates: {updates}"
