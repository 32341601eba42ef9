"""Verifies one pair of steps."""

import time
from collections.abc import Callable, Iterator

from relayout.layouts import maxtext
from relayout.layouts.state import Role, StoredLeaf
from relayout.verify.account import (
  Account,
  Difference,
  Kind,
  Moved,
  Stacked,
  labels,
)
from relayout.verify.bits import Mismatch
from relayout.verify.candidates import SourceStep, TargetStep
from relayout.verify.compare import Compared, compare_all
from relayout.verify.derived import derive
from relayout.verify.layer_order import describe_order
from relayout.verify.leftovers import Judge, unreadable_key
from relayout.verify.matching import Comparison, Matched, match
from relayout.verify.oracle import Oracle
from relayout.verify.report import StepReport
from relayout.verify.sides import Side, read_source, read_target
from relayout.verify.structure import check_structure, note_step

type Progress = Callable[[str], None]
"""Is told in words what was just done, for long work."""


def verify_step(
  source_step: SourceStep,
  target_step: TargetStep,
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
  target = read_target(target_step)
  weights_only = _holds_weights_only(target)
  source = read_source(source_step, weights_only=weights_only)
  matched = match(source.state, target.state)
  accounts: list[Account] = [
    *check_structure(target, target_step.path),
    *target.problems,
    *_check_optimizers(source, target, weights_only=weights_only),
    *_check_keys(matched, target),
    *derive(source, target, matched.counters),
    *(
      Difference(Kind.EXTRA, stored.label, f"the source has no {key}")
      for key, stored in matched.extra
    ),
  ]
  compared = list(_compare(matched, source, target, memory_limit, progress))
  accounts += [account for account, _ in compared]
  judge = Judge(source, target, weights_only, memory_limit)
  accounts += judge.of_state(matched.rest.items())
  accounts += judge.of_others({x for a in accounts for x in labels(a)})
  accounts += _check_complete(accounts, source, target)
  return StepReport(
    source=str(source_step.path),
    target=str(target_step.item),
    updates=source.state.step.value if source.state.step else None,
    accounts=tuple(accounts),
    num_bytes=sum(num_bytes for _, num_bytes in compared),
    seconds=time.monotonic() - started,
    notes=(
      *_notes(source, weights_only=weights_only),
      *note_step(target, target_step.path),
    ),
  )


def _holds_weights_only(target: Side) -> bool:
  """Whether the target has no leaf of an optimizer and no step."""
  roots = {stored.leaf.path.names[0] for stored in target.stored()}
  return not roots & {"opt_state", "step"}


def _check_optimizers(
  source: Side, target: Side, *, weights_only: bool
) -> Iterator[Difference]:
  found, expected = target.state.optimizer, source.state.optimizer
  if found != expected and not weights_only:
    yield Difference(
      Kind.LAYOUT,
      f"{maxtext.ITEM}/opt_state",
      f"has the form of {found or 'no optimizer'}, the source's optimizer is "
      f"{expected or 'none'}",
    )


def _check_keys(matched: Matched, target: Side) -> Iterator[Difference]:
  """Checks that MaxText can read the rng state of the target."""
  stored = unreadable_key(target)
  if stored is not None:
    spec = stored.leaf.spec
    yield Difference(
      Kind.LAYOUT,
      stored.label,
      f"an rng key of {stored.leaf.random_key_impl or 'another kind'}, shape "
      f"{list(spec.shape) if spec else []}: MaxText's pre-training reads "
      "unsafe_rbg only, and fails to resume",
    )
  for comparison in matched.comparisons:
    if comparison.key.role is Role.RNG:
      yield from _check_key_impl(comparison)


def _check_key_impl(comparison: Comparison) -> Iterator[Difference]:
  expected = comparison.sources[0].leaf.random_key_impl
  found = comparison.target.leaf.random_key_impl
  if found != expected:
    yield Difference(
      Kind.METADATA,
      comparison.target.label,
      f"array_metadatas says random_key_impl {found}, the source's {expected}",
    )


def _compare(
  matched: Matched,
  source: Side,
  target: Side,
  memory_limit: int,
  progress: Progress,
) -> Iterator[tuple[Account, int]]:
  """Yields for each comparison the account, and the bytes compared."""
  oracles = {**source.oracles, **target.oracles}

  def oracle_of(stored: StoredLeaf) -> Oracle:
    return oracles[stored.item.directory]

  total = sum(_num_bytes(comparison) for comparison in matched.comparisons)
  done = 0
  for found in compare_all(matched.comparisons, oracle_of, memory_limit):
    hint = ""
    if found.mismatch:
      hint = describe_order(found, oracle_of, memory_limit)
    yield _account(found, hint), found.num_bytes
    done += _num_bytes(found.comparison)
    progress(_describe_progress(found, done, total))


def _describe_progress(found: Compared, done: int, total: int) -> str:
  percent = 100 * done // max(total, 1)
  step = found.comparison.target.item.directory.parent.name
  return (
    f"step {step}: compared {percent} %, {found.comparison.target.leaf.name}"
  )


def _num_bytes(comparison: Comparison) -> int:
  spec = comparison.target.leaf.spec
  return spec.num_bytes if spec else 0


def _account(found: Compared, hint: str) -> Account:
  comparison = found.comparison
  sources = tuple(stored.label for stored in comparison.sources)
  target = comparison.target.label
  if found.problem is not None:
    return found.problem
  if found.mismatch is not None:
    detail = _describe(found.mismatch, found)
    if hint:
      return Difference(Kind.ORDER, target, f"{hint}; {detail}", sources)
    return Difference(Kind.VALUE, target, detail, sources)
  if found.axis is None:
    return Moved(sources[0], target, found.num_bytes)
  return Stacked(sources, target, found.axis, found.num_bytes)


def _describe(mismatch: Mismatch, found: Compared) -> str:
  layer = 0 if found.axis is None else mismatch.first[found.axis]
  spec = found.comparison.target.leaf.spec
  num_elements = spec.num_elements if spec else 0
  return (
    f"{mismatch.count} of {num_elements} elements differ from "
    f"{found.comparison.sources[layer].label}, first at "
    f"{list(mismatch.first)}: {mismatch.target_value}, expected "
    f"{mismatch.source_value}"
  )


def _check_complete(
  accounts: list[Account], source: Side, target: Side
) -> Iterator[Difference]:
  """Yields the leaves of either side that have no account: there are none."""
  accounted = {label for account in accounts for label in labels(account)}
  for side in (source, target):
    for label in side.labels():
      if label not in accounted:
        yield Difference(Kind.UNACCOUNTED, label, "nothing accounts for it")


def _notes(source: Side, *, weights_only: bool) -> Iterator[str]:
  for item in source.items:
    yield from item.notes
  if weights_only and source.optimizer is not None:
    yield "the target holds weights only; the optimizer state was left out"
