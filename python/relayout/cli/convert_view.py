"""The report of a conversion as text."""

from collections import Counter
from collections.abc import Iterator

from relayout.cli import table
from relayout.convert.apply import Applied
from relayout.convert.plan import Derived, StepPlan
from relayout.convert.report import (
  Report,
  StepReport,
  by_way,
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
  yield table.columns(_rows(step.plan, step))
  for note in step.plan.notes:
    yield f"  note: {note}"


def _rows(plan: StepPlan, step: StepReport) -> Iterator[tuple[str, str]]:
  yield from plan.facts
  found = counts(plan)
  yield (
    "leaves",
    ", ".join(f"{number} {name}" for name, number in found.items()),
  )
  yield from _derived_rows(plan)
  yield from _dropped_rows(plan)
  yield "arrays", table.size(plan.num_array_bytes)
  yield from _way_rows(plan, step)
  for path in plan.carried:
    yield "carried along", path.name
  if step.applied:
    yield from _applied_rows(step.applied)


def _way_rows(plan: StepPlan, step: StepReport) -> Iterator[tuple[str, str]]:
  """Yields how arrays come into the target, and why not in a cheaper way."""
  for total in by_way(plan):
    reason = f": {total.reason}" if total.reason else ""
    number = table.count(total.num_leaves, "array")
    yield (
      f"  {total.way.value}",
      f"{number}, {table.size(total.num_bytes)}{reason}",
    )
  if step.expected_memory_bytes:
    yield "memory for that", f"up to {table.size(step.expected_memory_bytes)}"


def _derived_rows(plan: StepPlan) -> Iterator[tuple[str, str]]:
  arrays: Counter[str] = Counter()
  for leaf in plan.leaves:
    if not isinstance(leaf.origin, Derived):
      continue
    origin = leaf.origin
    if origin.values or origin.is_zero:
      arrays[origin.rule] += 1
    else:
      yield "  derived", f"{leaf.name} = {origin.value}: {origin.rule}"
  for rule, number in arrays.items():
    yield "  derived", f"{table.count(number, 'array')}: {rule}"


def _dropped_rows(plan: StepPlan) -> Iterator[tuple[str, str]]:
  for what, set_aside in (("dropped", False), ("set aside", True)):
    found = dropped_by_reason(plan, set_aside=set_aside)
    for reason, labels in found.items():
      names = ", ".join(labels[:_MOST_NAMES])
      more = len(labels) - _MOST_NAMES
      rest = f" and {more} more" if more > 0 else ""
      yield f"  {what}", f"{names}{rest}: {reason}"


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
      f"{table.size(applied.num_bytes_written)}, of which chunks "
      f"{table.size(applied.num_bytes_rewritten)} and side files "
      f"{table.size(applied.num_side_bytes)}"
    ),
  )
