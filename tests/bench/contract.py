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
  yield from _judge_unstacking(rows)


def _judge_unstacking(rows: Mapping[str, Row]) -> Iterator[Verdict]:
  for dtype in ("float32", "bfloat16"):
    if row := rows.get(f"unstack_{dtype}"):
      yield _at_least(row, 4)
    if row := rows.get(f"unstack_{dtype}_bound"):
      yield _at_least(row, 0.8)
  if row := rows.get("unstack_raw"):
    yield _at_least(row, 0.7)
  if row := rows.get("unstack_in_shard"):
    yield _within(row, seconds=0.1, megabytes=150)
  smaller, larger = rows.get("memory_1gib"), rows.get("memory_8gib")
  for memory in (smaller, larger):
    if memory:
      yield _holds_at_most(memory, 400)
  if smaller and larger:
    yield _same_memory(smaller, larger, 0.1)


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


def _holds_at_most(row: Row, mebibytes: float) -> Verdict:
  held = _anonymous_mebibytes(row)
  return Verdict(
    f"{row.name}: {held:.0f} MiB of anonymous memory, at most {mebibytes:g} "
    "asked",
    held <= mebibytes,
  )


def _same_memory(smaller: Row, larger: Row, share: float) -> Verdict:
  quotient = _anonymous_mebibytes(larger) / _anonymous_mebibytes(smaller)
  return Verdict(
    f"{larger.name}: {quotient:.3g} times the memory of {smaller.name}, 1 by "
    f"{share:.0%} at most asked",
    abs(quotient - 1) <= share,
  )


def _anonymous_mebibytes(row: Row) -> float:
  megabytes = row.ours.anonymous_mb
  assert megabytes is not None
  return megabytes * 1e6 / 2**20
