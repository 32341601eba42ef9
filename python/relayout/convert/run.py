"""Converts a run, a step or an item: all plans first, then all writing."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from relayout.convert import apply, provenance, report, staging
from relayout.convert.options import Options
from relayout.convert.plan import StepPlan
from relayout.convert.planner import plan_step
from relayout.convert.reference import Reference, read_reference, resolve
from relayout.convert.source import Source, read_item, read_step
from relayout.errors import (
  NotACheckpointError,
  OptionError,
  RelayoutError,
  TargetExistsError,
)
from relayout.metadata.checkpoint import (
  Found,
  StepDirectory,
  check_local,
  find_checkpoint,
)

type Progress = Callable[[str], None]


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
  """One step to do, planned down to its keys.

  Attributes:
    plan: What the step becomes.
    prepared: The plan, checked; None if an earlier run wrote it already.
    target: The target's step directory.
    record: Provenance.
  """

  plan: StepPlan
  prepared: apply.Prepared | None
  target: Path
  record: dict[str, Any]


def convert(
  source: Path,
  target: Path,
  options: Options,
  *,
  dry_run: bool = False,
  progress: Progress = lambda message: None,
) -> report.Report:
  """Converts `source` into another layout or form, below `target`.

  Args:
    source: A run's checkpoint directory, one step, or one item.
    target: A checkpoints directory; a directory `<N>` appears below it for
      each step.
    options: What is asked for.
    dry_run: Plan and check everything, write nothing.
    progress: Is told what happens next, for long work.

  Raises:
    RelayoutError: If the source is unusable or an option does not fit; then
      nothing was written.
  """
  started = time.monotonic()
  found = find_checkpoint(source)
  reference = read_reference(options.like) if options.like else None
  if reference is not None:
    options = resolve(options, reference)
  options.check()
  _check_target(found, target)
  jobs = [*_jobs(found, target, options, reference, progress)]
  if not jobs:
    raise NotACheckpointError(f"{source}: holds no step to convert")
  _check_numbers(jobs)
  steps = [
    _do(job, options, dry_run=dry_run, progress=progress) for job in jobs
  ]
  return report.Report(
    steps=tuple(steps),
    notes=tuple(_notes(found, target, jobs, options)),
    seconds=time.monotonic() - started,
    peak_memory_bytes=report.peak_memory_bytes(),
  )


def _check_target(found: Found, target: Path) -> None:
  """Refuses a target that is no place for a checkpoints directory.

  Such as one that is, or lies in, what holds the source's steps.
  """
  check_local(target)
  if target.exists() and not target.is_dir():
    raise OptionError(f"TARGET {target}: is a file; name a directory")
  sources = {found.root.resolve()}
  sources |= {step.path.resolve().parent for step in found.steps}
  inner = target.resolve()
  for outer in sources:
    if inner == outer or outer in inner.parents:
      raise OptionError(
        f"TARGET {target} lies in SOURCE's {outer}; the source is never "
        "touched. Name a directory outside of it"
      )


def _selected(found: Found, options: Options) -> Sequence[StepDirectory]:
  if options.step is None:
    return found.steps
  if found.item is not None:
    raise OptionError(f"--step={options.step}: SOURCE is a single item")
  steps = [step for step in found.steps if step.number == options.step]
  if not steps:
    numbers = ", ".join(str(step.number) for step in found.steps)
    raise OptionError(
      f"--step={options.step}: {found.root} has no such step; it has {numbers}"
    )
  return steps


def _jobs(
  found: Found,
  target: Path,
  options: Options,
  reference: Reference | None,
  progress: Progress,
) -> Iterator[_Job]:
  """Plans every step; an error says which one it is about."""
  steps = _selected(found, options)
  if found.item is not None:
    step = found.steps[0] if found.steps else None
    yield _job(read_item(found.item, step), target, options, reference)
    return
  for step in steps:
    progress(f"reading {step.path}")
    try:
      source = read_step(step, params_only=options.params_only)
      job = _job(source, target, options, reference)
    except RelayoutError as error:
      raise _naming(error, found, step) from error
    yield job


def _naming(
  error: RelayoutError, found: Found, step: StepDirectory
) -> RelayoutError:
  """Says which step of several is at fault, and how to convert the others."""
  if len(found.steps) < 2 or isinstance(error, OptionError):
    return error
  return type(error)(
    f"step {step.number}: {error}\n(nothing was written; convert the other "
    "steps one by one with --step=N)"
  )


def _job(
  source: Source, target: Path, options: Options, reference: Reference | None
) -> _Job:
  plan = plan_step(source, options, reference)
  directory = target / str(plan.target_number)
  record = provenance.describe(source.layout, plan.items, options)
  if directory.exists() or directory.is_symlink():
    _check_ours(directory, record)
    return _Job(plan, None, directory, record)
  prepared = apply.prepare(plan, options.memory_limit)
  return _Job(plan, prepared, directory, record)


def _check_ours(directory: Path, record: dict[str, Any]) -> None:
  """Checks that an existing target is what this conversion would make."""
  there = provenance.read(directory)
  if there == record:
    return
  if there is None:
    raise TargetExistsError(
      f"{directory}: exists and was not made by relayout; it is left as it "
      "is. Choose another TARGET, or remove it yourself"
    )
  different = _differences(there, record)
  raise TargetExistsError(
    f"{directory}: was made by relayout from another source or in another way "
    f"(different: {', '.join(different)}); it is left as it is. Choose "
    "another TARGET, or remove it yourself"
  )


def _differences(there: Any, record: Any, name: str = "") -> list[str]:
  """Returns what differs between two records, as `name: old -> new`."""
  if not (isinstance(there, dict) and isinstance(record, dict)):
    return [] if there == record else [f"{name}: {there} -> {record}"]
  return [
    line
    for key in sorted(record.keys() | there.keys())
    for line in _differences(there.get(key), record.get(key), key)
  ]


def _check_numbers(jobs: Sequence[_Job]) -> None:
  """Refuses two steps that would take the same directory."""
  seen: dict[Path, StepPlan] = {}
  for job in jobs:
    other = seen.setdefault(job.target, job.plan)
    if other is not job.plan:
      raise OptionError(
        f"{other.source} and {job.plan.source} would both become "
        f"{job.target}. Convert one of them with --step=N, or keep their "
        "numbers with --step_numbering=keep"
      )


def _do(
  job: _Job, options: Options, *, dry_run: bool, progress: Progress
) -> report.StepReport:
  source, target = str(job.plan.source), str(job.target)
  if job.prepared is None:
    staging.remove_stale(job.target)
    return report.StepReport(
      source, target, "skipped", reason="already converted by an earlier run"
    )
  started = time.monotonic()
  applied = None
  if not dry_run:
    progress(f"writing {target}")
    applied = apply.apply_step(
      job.prepared,
      job.target,
      job.record,
      memory_limit=options.memory_limit,
      progress=progress,
    )
  return report.StepReport(
    source,
    target,
    "planned" if dry_run else "converted",
    plan=job.plan,
    applied=applied,
    seconds=time.monotonic() - started,
    expected_memory_bytes=job.prepared.expected_memory,
  )


def _note_others(target: Path, jobs: Sequence[_Job]) -> Iterator[str]:
  """Yields a note if the target holds steps that are none of this conversion.

  MaxText resumes from the highest number, whoever wrote it.
  """
  ours = {job.target.name for job in jobs}
  there = (path.name for path in target.iterdir()) if target.is_dir() else ()
  others = sorted(
    {int(name) for name in there if name.isdecimal()} - {*map(int, ours)}
  )
  if others:
    newest = max(others)
    resumes = newest > max(map(int, ours))
    yield (
      f"TARGET also holds {', '.join(map(str, others))}, which this conversion "
      "did not make"
      + (f"; MaxText resumes from the highest, {newest}" if resumes else "")
    )


def _notes(
  found: Found, target: Path, jobs: Sequence[_Job], options: Options
) -> Iterator[str]:
  if found.level:
    yield f"the steps are below `{found.level}`"
  yield from found.notes
  yield from _note_others(target, jobs)
  if found.ignored:
    yield f"left alone: {', '.join(found.ignored)}"
  if options.to == "tunix":
    yield from _notes_on_tunix(jobs)
  elif options.step_numbering == "keep":
    yield (
      "directories keep their numbers: MaxText's directory N holds N + 1 "
      "updates, so a run that resumes from these skips its first due save, or "
      "stops with 'checkpoint already exists' if that is its last step"
    )
  else:
    yield (
      "numbered as MaxText does: the directory of N updates is N - 1 (0 stays "
      "0)"
    )


def _notes_on_tunix(jobs: Sequence[_Job]) -> Iterator[str]:
  """Yields what Tunix makes of a directory's number."""
  if all(job.plan.has_optimizer for job in jobs):
    newest = max(job.plan.target_number for job in jobs)
    yield (
      f"Tunix goes on at the number of the directory, {newest}: a run whose "
      "budget (`steps`) is not larger trains nothing"
    )
  else:
    yield (
      "weights only: Tunix starts with fresh moments, at the number of the "
      "directory"
    )
