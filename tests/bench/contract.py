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
  yield from _judge_trainers(rows)


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
  for name in ("memory_1gib", "memory_8gib"):
    if row := rows.get(name):
      yield _holds_at_most(row, 400)


def _judge_trainers(rows: Mapping[str, Row]) -> Iterator[Verdict]:
  if row := rows.get("trainer_save"):
    yield _at_least(row, 1 / 1.1)
    yield _peaks_at_most(row, 1.1)
  if row := rows.get("trainer_restore"):
    yield _at_least(row, 1 / 1.2)


def _at_least(row: Row, times: float) -> Verdict:
  ratio = row.ratio or 0.0
  text = f"{row.name}: {row.peer_name} takes {ratio:.3g} times as long"
  return Verdict(f"{text}, at least {times:.3g} asked", ratio >= times)


def _peaks_at_most(row: Row, times: float) -> Verdict:
  assert row.peer is not None
  quotient = row.ours.peak_mb / row.peer.peak_mb
  return Verdict(
    f"{row.name}: {quotient:.3g} times the memory of {row.peer_name}, at most "
    f"{times:g} asked",
    quotient <= times,
  )


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


def _anonymous_mebibytes(row: Row) -> float:
  megabytes = row.ours.anonymous_mb
  assert megabytes is not None
  return megabytes * 1e6 / 2**20
