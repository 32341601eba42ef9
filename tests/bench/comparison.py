"""Runs the sides of each case in turn."""

import contextlib
import dataclasses
import itertools
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from tests.bench import sides
from tests.bench.samples import Row, Sample, Samples
from tests.bench.sides import Side


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Source:
  """What cases start from.

  Attributes:
    write: Writes it to a path that does not exist; called in a process of its
      own.
    num_scratch_bytes: Room for it and one target, generously.
  """

  write: Callable[[Path], None]
  num_scratch_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
  """Ways from one source; those of one source stand together.

  Attributes:
    source: What is converted.
    ours: relayout's way.
    peers: What it is compared with, each in a row of its own, by the row's
      name; None where there is nothing to compare.
    max_rounds: Most counted rounds.
  """

  source: Source
  ours: Side
  peers: Mapping[str, Side | None]
  max_rounds: int = 1000

  def only(self, names: Collection[str]) -> "Case | None":
    """Returns the case with some of its rows; None if none of them is left."""
    peers = {name: side for name, side in self.peers.items() if name in names}
    return dataclasses.replace(self, peers=peers) if peers else None


def run(
  cases: Iterable[Case],
  scratch: Path,
  *,
  num_rounds: int,
  progress: Callable[[str], None],
) -> Iterator[Row]:
  """Yields the rows of each case.

  Rounds of all sides are interleaved.  A first one is not counted: it fills
  the caches, and its results are checked.
  """
  source = scratch / "source"
  for written, group in itertools.groupby(cases, key=lambda case: case.source):
    members = list(group)
    progress(f"writing the source of {next(iter(members[0].peers))}")
    sides.call(written.write, source)
    for case in members:
      progress(f"measuring {', '.join(case.peers)}")
      rounds = min(num_rounds, case.max_rounds)
      yield from _run_case(case, source, scratch / "target", rounds)
    shutil.rmtree(source)


def _run_case(
  case: Case, source: Path, target: Path, num_rounds: int
) -> Iterator[Row]:
  peers = [side for side in case.peers.values() if side is not None]
  every = [case.ours, *peers]
  taken: dict[Side, list[Sample]] = {side: [] for side in every}
  with contextlib.ExitStack() as stack:
    runs = [stack.enter_context(side.start()) for side in every]
    for number in range(1 + num_rounds):
      for side, run_once in zip(every, runs, strict=True):
        # Nobody pays for what another side, or the removal, left to be written.
        os.sync()
        sample = run_once(source, target)
        if number > 0:
          taken[side].append(sample)
        elif side.check is not None:
          side.check(source, target)
        shutil.rmtree(target)
  samples = {side: Samples(tuple(found)) for side, found in taken.items()}
  ours = samples[case.ours]
  for name, peer in case.peers.items():
    yield Row(name, ours, peer.name, samples[peer]) if peer else Row(name, ours)
