"""Runs the sides of each case in turn."""

import contextlib
import dataclasses
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
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
  """Two ways from one source; those of one source stand together."""

  name: str
  source: Source
  ours: Side
  peer: Side | None = None


def run(
  cases: Iterable[Case],
  scratch: Path,
  *,
  num_rounds: int,
  progress: Callable[[str], None],
) -> Iterator[Row]:
  """Yields a row for each case.

  Rounds of both sides are interleaved.  A first one is not counted: it fills
  the caches, and its results are checked.
  """
  source = scratch / "source"
  for written, group in itertools.groupby(cases, key=lambda case: case.source):
    members = list(group)
    progress(f"writing the source of {members[0].name}")
    sides.call(written.write, source)
    for case in members:
      progress(f"measuring {case.name}")
      yield _run_case(case, source, scratch / "target", num_rounds)
    shutil.rmtree(source)


def _run_case(case: Case, source: Path, target: Path, num_rounds: int) -> Row:
  both = [side for side in (case.ours, case.peer) if side is not None]
  taken: list[list[Sample]] = [[] for _ in both]
  with contextlib.ExitStack() as stack:
    runs = [stack.enter_context(side.start()) for side in both]
    for number in range(1 + num_rounds):
      for side, run_once, samples in zip(both, runs, taken, strict=True):
        # Nobody pays for what another side, or the removal, left to be written.
        os.sync()
        sample = run_once(source, target)
        if number > 0:
          samples.append(sample)
        elif side.check is not None:
          side.check(source, target)
        shutil.rmtree(target)
  return _row(case, taken)


def _row(case: Case, taken: Sequence[Sequence[Sample]]) -> Row:
  ours, *peer = (Samples(tuple(samples)) for samples in taken)
  return Row(
    name=case.name,
    ours=ours,
    peer_name="" if case.peer is None else case.peer.name,
    peer=peer[0] if peer else None,
  )
