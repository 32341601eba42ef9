"""Verifies one pair of steps."""

import time
from collections.abc import Iterable, Iterator

from relayout.comparison.directories import unlike_files
from relayout.comparison.forms import Declared, Forms, forms_of
from relayout.comparison.side import Side, read_side
from relayout.comparison.steps import Step
from relayout.verify.account import (
  Account,
  Difference,
  Kind,
  source_labels,
  target_labels,
)
from relayout.verify.added import Added
from relayout.verify.counters import counter_accounts
from relayout.verify.leftovers import Judge, unreadable_key
from relayout.verify.matching import Matched, match
from relayout.verify.report import StepReport
from relayout.verify.structure import check_structure, note_step
from relayout.verify.target import read_target
from relayout.verify.values import Comparison, Progress


def verify_step(
  source_step: Step,
  target_step: Step,
  declared: Declared,
  *,
  memory_limit: int,
  progress: Progress,
) -> StepReport:
  """Accounts for every leaf of one step on either side.

  Raises:
    RelayoutError: If either side can't be read, or the source does not follow
      its layout.
  """
  started = time.monotonic()
  found = read_target(target_step)
  target = found.side
  weights_only = _holds_weights_only(target)
  source = read_side(source_step, weights_only=weights_only)
  forms = forms_of(
    source, target, declared, by_first=True, names=("SOURCE", "TARGET")
  )
  matched = match(source, target, forms)
  compared = list(
    Comparison(source, target, memory_limit, progress).accounts(matched.claims)
  )
  accounts: list[Account] = [
    *check_structure(target),
    *found.problems,
    *_check_optimizers(source, target, weights_only=weights_only),
    *_check_rng(target),
    *_misfits(matched),
    *_counters(source, target, weights_only=weights_only),
    *(account for account, _ in compared),
  ]
  added = Added(source, target, memory_limit).accounts(matched)
  accounts += _without_problems(added, found.problems)
  done = {label for account in accounts for label in source_labels(account)}
  judge = Judge(source, target, forms, weights_only, memory_limit)
  accounts += judge.accounts(matched, done)
  accounts += _check_directories(source, target, weights_only=weights_only)
  accounts += _check_complete(accounts, source, target)
  return StepReport(
    source=str(source_step.path),
    target=str(target_step.path),
    updates=source.state.step.value if source.state.step else None,
    accounts=tuple(accounts),
    num_bytes=sum(num_bytes for _, num_bytes in compared),
    seconds=time.monotonic() - started,
    notes=tuple(_notes(source, target, forms, weights_only=weights_only)),
  )


def _holds_weights_only(target: Side) -> bool:
  """Whether the target has no leaf of an optimizer and no step."""
  if target.step.layout == "tunix":
    return not target.items[1:]
  roots = {stored.leaf.path.names[0] for stored in target.stored()}
  return not roots & {"opt_state", "step"}


def _counters(
  source: Side, target: Side, *, weights_only: bool
) -> Iterator[Account]:
  if not weights_only:
    yield from counter_accounts(source, target)


def _without_problems(
  accounts: Iterator[Account], problems: Iterable[Difference]
) -> Iterator[Account]:
  """Yields accounts of target leaves that are not known to be a problem."""
  known = {label for problem in problems for label in target_labels(problem)}
  for account in accounts:
    if not known & {*target_labels(account)}:
      yield account


def _check_optimizers(
  source: Side, target: Side, *, weights_only: bool
) -> Iterator[Difference]:
  found, expected = target.state.optimizer, source.state.optimizer
  if found != expected and not weights_only:
    item = target.items[-1].name
    yield Difference(
      Kind.LAYOUT,
      f"{item}/opt_state",
      f"has the form of {found or 'no optimizer'}, the source's optimizer is "
      f"{expected or 'none'}",
    )


def _check_rng(target: Side) -> Iterator[Difference]:
  """Checks that MaxText can read the rng state of the target."""
  stored = unreadable_key(target)
  if stored is not None and target.step.layout == "maxtext":
    spec = stored.leaf.spec
    yield Difference(
      Kind.LAYOUT,
      stored.label,
      f"an rng key of {stored.leaf.random_key_impl or 'another kind'}, shape "
      f"{list(spec.shape) if spec else []}: MaxText's pre-training reads "
      "unsafe_rbg only, and fails to resume",
    )


def _misfits(matched: Matched) -> Iterator[Difference]:
  for misfit in matched.misfits:
    yield Difference(Kind.SHAPE, misfit.stored.label, misfit.reason)


def _check_directories(
  source: Side, target: Side, *, weights_only: bool
) -> Iterator[Difference]:
  """Checks what goes along with a step, such as a data iterator's state."""
  if weights_only or source.step.is_item or target.step.is_item:
    return
  for name, path in source.step.others.items():
    there = target.step.others.get(name)
    if there is None:
      detail = "not in the target; it goes along as it is"
      yield Difference(Kind.MISSING, name, detail)
      continue
    for file, reason in unlike_files(path, there):
      yield Difference(Kind.FILE, f"{name}/{file}", reason)


def _check_complete(
  accounts: list[Account], source: Side, target: Side
) -> Iterator[Difference]:
  """Yields the leaves of either side that have no account: there are none."""
  for side, labels in ((source, source_labels), (target, target_labels)):
    known = {label for account in accounts for label in labels(account)}
    for label in side.labels():
      if label not in known:
        yield Difference(Kind.UNACCOUNTED, label, "nothing accounts for it")


def _notes(
  source: Side, target: Side, forms: Forms, *, weights_only: bool
) -> Iterator[str]:
  for item in source.items:
    yield from item.notes
  if forms.grouping:
    yield f"{forms.a} -> {forms.b}; {forms.note}"
  if weights_only and (source.items[1:] or source.state.optimizer):
    yield "the target holds weights only; the optimizer state was left out"
  accumulation = source.state.accumulation
  if accumulation and accumulation.mini_step and not weights_only:
    yield (
      f"the source's update is unfinished: to {target.step.layout}'s trainer "
      f"the gradients of {accumulation.mini_step} micro-steps may be LOST, "
      "even if they are set aside"
    )
  if source.record.is_conversion and not target.record.is_conversion:
    yield ("SOURCE was made by relayout and TARGET was not: are they swapped?")
  yield from note_step(target)
