"""What was measured, and how it is shown."""

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
  """One run of one side.

  Attributes:
    seconds: Wall-clock time.
    peak_bytes: Peak resident memory of its process so far.
    anonymous_bytes: Peak of what of it is no page of a file; None where that
      was not watched.
  """

  seconds: float
  peak_bytes: int
  anonymous_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Samples:
  """All counted runs of one side; at least one."""

  taken: tuple[Sample, ...]

  @property
  def seconds(self) -> tuple[float, ...]:
    return tuple(sample.seconds for sample in self.taken)

  @property
  def median(self) -> float:
    return statistics.median(self.seconds)

  @property
  def peak_mb(self) -> float:
    """The highest peak of all runs, in 10^6 bytes."""
    return max(sample.peak_bytes for sample in self.taken) / 1e6

  @property
  def anonymous_mb(self) -> float | None:
    """The same of anonymous memory; None where it was not watched."""
    found = [sample.anonymous_bytes for sample in self.taken]
    known = [number for number in found if number is not None]
    return max(known) / 1e6 if known else None


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
  """One line of the table; `peer` is None where there is nothing to compare."""

  name: str
  ours: Samples
  peer_name: str = ""
  peer: Samples | None = None

  @property
  def ratio(self) -> float | None:
    """How many times longer the peer takes, by the medians."""
    return None if self.peer is None else self.peer.median / self.ours.median

  def to_json(self) -> dict[str, Any]:
    peer, ratio = self.peer, self.ratio
    anonymous = self.ours.anonymous_mb
    return {
      "name": self.name,
      "seconds": round(self.ours.median, 6),
      "peer": self.peer_name or None,
      "peer_seconds": None if peer is None else round(peer.median, 6),
      "ratio": None if ratio is None else round(ratio, 2),
      "peak_mb": round(self.ours.peak_mb, 1),
      "anonymous_mb": None if anonymous is None else round(anonymous, 1),
    }


_HEAD = (
  "row",
  "relayout",
  "peak MB",
  "peer",
  "peer's time",
  "peer's peak MB",
  "ratio",
)


def markdown(rows: Sequence[Row]) -> str:
  """Returns the table, times as `median (min-max)`, without a final newline."""
  cells = [_HEAD, *map(_cells, rows)]
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  lines = [_line(row, widths) for row in cells]
  lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
  return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
  padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
  return f"| {' | '.join(padded)} |"


def _cells(row: Row) -> tuple[str, ...]:
  ours = (f"`{row.name}`", *_side_cells(row.ours))
  if row.peer is None or row.ratio is None:
    return (*ours, "-", "-", "-", "-")
  time, peak = _side_cells(row.peer)
  return (*ours, row.peer_name, time, peak, f"{row.ratio:.3g}")


def _side_cells(samples: Samples) -> Iterator[str]:
  low, high = min(samples.seconds), max(samples.seconds)
  yield f"{_time(samples.median)} ({_time(low)}-{_time(high)})"
  anonymous = samples.anonymous_mb
  note = "" if anonymous is None else f" ({anonymous:.0f} anonymous)"
  yield f"{samples.peak_mb:.0f}{note}"


def _time(seconds: float) -> str:
  if seconds < 0.9995:
    return f"{seconds * 1e3:.3g} ms"
  return f"{seconds:.2f} s"
