"""The report of a conversion as text."""

from collections.abc import Iterator

from relayout.cli import table
from relayout.convert.apply import Applied
from relayout.convert.plan import Derived, StepPlan
from relayout.convert.report import (
  Report,
  StepReport,
  counts,
  dropped_by_reason,
)

_MOST_NAMES = 3


def render(report: Report) -> str:
  """Returns the report as text, without a final newline."""
  return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
  for step in report.steps:
    yield from _step_lines(step)
    yield ""
  for note in report.notes:
    yield f"note: {note}"
  yield (
    f"{table.count(len(report.steps), 'step')} in {report.seconds:.3f} s, peak "
    f"memory {table.size(report.peak_memory_bytes)}"
  )


def _step_lines(step: StepReport) -> Iterator[str]:
  if step.plan is None:
    yield f"{step.source}: {step.status}, {step.reason}"
    return
  verb = "would become" if step.status == "planned" else "->"
  yield f"{step.source} {verb} {step.target}"
  yield table.columns(_rows(step.plan, step.applied))
  for note in step.plan.notes:
    yield f"  note: {note}"


def _rows(plan: StepPlan, applied: Applied | None) -> Iterator[tuple[str, str]]:
  yield from plan.facts
  found = counts(plan)
  yield (
    "leaves",
    ", ".join(f"{number} {name}" for name, number in found.items()),
  )
  yield from _derived_rows(plan)
  yield from _dropped_rows(plan)
  yield "arrays", table.size(plan.num_array_bytes)
  if applied:
    yield from _applied_rows(applied)


def _derived_rows(plan: StepPlan) -> Iterator[tuple[str, str]]:
  for leaf in plan.leaves:
    if isinstance(leaf.origin, Derived):
      yield (
        "  derived",
        f"{leaf.name} = {leaf.origin.value}: {leaf.origin.rule}",
      )


def _dropped_rows(plan: StepPlan) -> Iterator[tuple[str, str]]:
  for reason, labels in dropped_by_reason(plan).items():
    names = ", ".join(labels[:_MOST_NAMES])
    more = (
      f" and {len(labels) - _MOST_NAMES} more" if labels[_MOST_NAMES:] else ""
    )
    yield "  dropped", f"{names}{more}: {reason}"


def _applied_rows(applied: Applied) -> Iterator[tuple[str, str]]:
  methods = ", ".join(f"{number} by {name}" for name, number in applied.methods)
  yield "data files", methods or "none"
  for reason in applied.reasons:
    yield "  not linked", reason
  yield "bytes linked", table.size(applied.num_bytes_linked)
  if applied.num_bytes_copied:
    yield "bytes copied", table.size(applied.num_bytes_copied)
  yield (
    "bytes written",
    (
      f"{table.size(applied.num_bytes_written)}, of which side files "
      f"{table.size(applied.num_side_bytes)}"
    ),
  )
