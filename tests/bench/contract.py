"""What the figures must be, in the sizes of `cases.Sizes()`."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from tests.bench.samples import Row


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
  """One promise, and whether it is kept."""

  text: str
  kept: bool


def judge(rows: Sequence[Row]) -> list[Verdict]:
  """Returns a verdict on each promise whose rows were measured."""
  return [*_judge({row.name: row for row in rows})]


def _judge(rows: Mapping[str, Row]) -> Iterator[Verdict]:
  if row := rows.get("stack"):
    yield _at_least(row, 200)
  if row := rows.get("stack_process"):
    yield _at_least(row, 1)
    yield _within(row, seconds=0.5, megabytes=150)
  if row := rows.get("rename_100000"):
    yield _at_least(row, 20)
  if row := rows.get("rename_1000000"):
    yield _within(row, seconds=5, megabytes=1500)
    if smaller := rows.get("rename_100000"):
      yield _growth(smaller, row, 13)


def _at_least(row: Row, times: float) -> Verdict:
  ratio = row.ratio or 0.0
  text = f"{row.name}: {row.peer_name} takes {ratio:.3g} times as long"
  return Verdict(f"{text}, at least {times:g} asked", ratio >= times)


def _within(row: Row, *, seconds: float, megabytes: float) -> Verdict:
  time, peak = row.ours.median, row.ours.peak_mb
  return Verdict(
    f"{row.name}: {time:.3g} s and {peak:.0f} MB, at most {seconds:g} s and "
    f"{megabytes:g} MB asked",
    time <= seconds and peak <= megabytes,
  )


def _growth(smaller: Row, larger: Row, times: float) -> Verdict:
  growth = larger.ours.median / smaller.ours.median
  return Verdict(
    f"{larger.name}: {growth:.3g} times {smaller.name}, at most {times:g} "
    "asked",
    growth <= times,
  )
