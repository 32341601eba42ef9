"""What verifying found, as text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from relayout.verify.account import Derived, Difference, Dropped, Held
from relayout.verify.report import StepReport, VerifyReport, counts

MOST_DIFFERENCES = 20
"""Differences that are shown of a step."""

_MOST_NAMES = 3
_INDENT = "  "


def render_table(report: VerifyReport) -> str:
  """Returns the report as text, without a final newline."""
  return "\n".join(_lines(report))


def _lines(report: VerifyReport) -> Iterator[str]:
  for step in report.steps:
    yield f"{step.source} -> {step.target}"
    yield from _aligned(_rows(step))
    yield from _differences(step.differences)
    yield from (f"{_INDENT}note: {note}" for note in step.notes)
    yield ""
  if report.unpaired:
    yield "steps without a counterpart"
    yield from _differences(report.unpaired)
    yield ""
  yield from (f"note: {note}" for note in report.notes)
  yield _verdict(report)


def _verdict(report: VerifyReport) -> str:
  num_steps = len(report.steps)
  where = f"{num_steps} step{'s' * (num_steps != 1)} in {report.seconds:.3f} s"
  if report.is_ok:
    return f"verified: every leaf is accounted for, {where}"
  found = report.totals()["differences"]
  if not report.steps:
    return "NOT verified: no step of the source and the target belong together"
  return f"NOT verified: {found} difference{'s' * (found != 1)}, {where}"


def _rows(step: StepReport) -> Iterator[tuple[str, str]]:
  if step.updates is not None:
    yield "updates", str(step.updates)
  found = {name: n for name, n in counts(step.accounts).items() if n}
  text = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in found.items())
  yield "leaves", text or "none"
  yield "compared", f"{step.num_bytes:,} bytes"
  yield from _cast_rows(step)
  yield from _derived_rows(step)
  yield from _dropped_rows(step)


def _cast_rows(step: StepReport) -> Iterator[tuple[str, str]]:
  by_cast = Counter(
    account.cast
    for account in step.accounts
    if isinstance(account, Held) and account.cast
  )
  for cast, number in by_cast.items():
    leaves = "leaf" if number == 1 else "leaves"
    yield "cast", f"{number} {leaves}, {cast}, as asked for: each value rounded"


def _derived_rows(step: StepReport) -> Iterator[tuple[str, str]]:
  for account in step.accounts:
    if isinstance(account, Derived):
      values = ""
      if account.source_value is not None:
        values = f", {account.source_value} -> {account.target_value}"
      yield "derived", f"{account.target}{values}: {account.rule}"


def _dropped_rows(step: StepReport) -> Iterator[tuple[str, str]]:
  by_reason: dict[str, list[str]] = {}
  for account in step.accounts:
    if isinstance(account, Dropped):
      by_reason.setdefault(account.reason, []).append(account.source)
  for reason, names in by_reason.items():
    yield "dropped", f"{_some(names)}: {reason}"


def _differences(found: Sequence[Difference]) -> Iterator[str]:
  for difference in found[:MOST_DIFFERENCES]:
    yield f"{_INDENT}DIFFERENCE ({difference.kind}) {difference}"
  if found[MOST_DIFFERENCES:]:
    yield f"{_INDENT}and {len(found) - MOST_DIFFERENCES} more"


def _some(names: Sequence[str]) -> str:
  more = len(names) - _MOST_NAMES
  shown = ", ".join(names[:_MOST_NAMES])
  return f"{shown} and {more} more" if more > 0 else shown


def _aligned(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
  """Yields rows with the second column aligned."""
  found = list(rows)
  width = max((len(name) for name, _ in found), default=0)
  for name, text in found:
    yield f"{_INDENT}{name.ljust(width)}  {text}"
