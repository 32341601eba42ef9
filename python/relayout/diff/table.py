"""In what two checkpoints differ, as text."""

from collections.abc import Iterable, Iterator, Sequence

from relayout.comparison.mismatch import Extreme, Mismatch
from relayout.diff.report import (
  DiffReport,
  LeafDiff,
  Status,
  StepDiff,
  Stored,
)

MOST_LEAVES = 20
"""Leaves that differ that are shown of a step, unless asked for more."""

_INDENT = "  "


def render_table(report: DiffReport, *, most_leaves: int = MOST_LEAVES) -> str:
  """Returns the report as text, without a final newline.

  Args:
    report: The report.
    most_leaves: How many of the leaves that differ to show of a step.
  """
  return "\n".join(_lines(report, most_leaves))


def _lines(report: DiffReport, most_leaves: int) -> Iterator[str]:
  for step in report.steps:
    yield f"A  {step.a}"
    yield f"B  {step.b}"
    yield from _columns(_facts(step))
    yield ""
    yield from _columns(_summary(step))
    yield from _differences(step, most_leaves)
    yield from _without_place(step)
    yield from (f"{_INDENT}note: {note}" for note in step.notes)
    yield ""
  yield from report.unpaired
  yield _verdict(report)


def _facts(step: StepDiff) -> Iterator[Sequence[str]]:
  yield ("", "A", "B")
  yield from step.facts


def _summary(step: StepDiff) -> Iterator[Sequence[str]]:
  statuses = [
    status
    for status in Status
    if any(leaf.status is status for leaf in step.leaves)
  ]
  yield ("leaves", *map(str, statuses))
  for role, found in step.by_role().items():
    yield (role, *(str(found.get(status, 0)) for status in statuses))


def _differences(step: StepDiff, most_leaves: int) -> Iterator[str]:
  found = step.differences
  for leaf in found[:most_leaves]:
    yield ""
    yield f"{_INDENT}{leaf.key}: {leaf.status}{_colon(leaf.detail)}"
    for side, stored in (("A", leaf.a), ("B", leaf.b)):
      if stored:
        yield f"{_INDENT * 2}{side}  {_describe(stored)}"
    if leaf.mismatch:
      yield from _values(leaf, leaf.mismatch)
  if found[most_leaves:]:
    yield ""
    yield f"{_INDENT}and {len(found) - most_leaves} more leaves that differ"
  if found:
    yield ""


def _colon(detail: str) -> str:
  return f": {detail}" if detail else ""


def _describe(stored: Stored) -> str:
  shape = ", ".join(map(str, stored.shape))
  return f"{stored.name}  [{shape}] {stored.dtype}"


def _values(leaf: LeafDiff, found: Mismatch) -> Iterator[str]:
  total = 1
  for length in leaf.a.shape if leaf.a else ():
    total *= length
  yield f"{_INDENT * 2}{found.count} of {total} elements differ"
  yield f"{_INDENT * 2}largest absolute {_extreme(found.largest)}"
  yield f"{_INDENT * 2}largest relative {_extreme(found.largest_relative)}"


def _extreme(found: Extreme) -> str:
  index = ", ".join(map(str, found.index))
  return f"{found.difference:.6g} at [{index}]: {found.a} / {found.b}"


def _without_place(step: StepDiff) -> Iterator[str]:
  by_reason: dict[str, list[str]] = {}
  for leaf in step.leaves:
    stored = leaf.a or leaf.b
    if leaf.status is Status.NO_PLACE and stored:
      side = "A" if leaf.a else "B"
      text = f"only in {side}, no difference: {leaf.detail}"
      by_reason.setdefault(text, []).append(stored.name)
  for text, names in by_reason.items():
    more = f" and {len(names) - 1} more" if names[1:] else ""
    yield f"{_INDENT}{names[0]}{more}: {text}"


def _columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
  """Yields rows as aligned columns."""
  found = list(rows)
  widths = [max(map(len, column)) for column in zip(*found, strict=True)]
  for row in found:
    cells = (c.ljust(width) for c, width in zip(row, widths, strict=True))
    yield f"{_INDENT}{'  '.join(cells)}".rstrip()


def _verdict(report: DiffReport) -> str:
  num_steps = len(report.steps)
  where = f"{num_steps} step{'s' * (num_steps != 1)} in {report.seconds:.3f} s"
  skipped = any(
    leaf.status is Status.SKIPPED
    for step in report.steps
    for leaf in step.leaves
  )
  if report.is_equal:
    return f"equal{', values not compared' * skipped}: {where}"
  found = sum(len(step.differences) for step in report.steps)
  leaves = "leaf differs" if found == 1 else "leaves differ"
  return f"DIFFERENT: {found} {leaves}, {where}"
