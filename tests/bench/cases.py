"""The cases, and what the contract says about them."""

import dataclasses
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.bench import (
  orbax_way,
  relayout_way,
  sides,
  tensorstore_way,
  trainer_cases,
  unstack_cases,
)
from tests.bench.comparison import Case, Source
from tests.bench.sides import Side
from tests.bench.trainer_states import Size

_MAX_COPIED_BY_KEY = 100_000
"""Beyond this, copying key by key takes too long to be worth a wait."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sizes:
  """How much there is to convert; as they are, what the contract is about."""

  num_layers: int = 24
  shape: tuple[int, int] = (1024, 4096)
  chunks: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
  scanned: tuple[int, int, int] = (1024, 28, 2560)
  trained: Size = dataclasses.field(default_factory=Size)


@dataclasses.dataclass(frozen=True, slots=True)
class Programs:
  """What is run as a program of its own: the launcher of each."""

  relayout: Path
  codec_bound: Path


def make(sizes: Sizes, programs: Programs, *, large: bool) -> Iterator[Case]:
  """Yields all cases; with `large`, also those of 8 GiB."""
  yield from _stack_cases(sizes, programs.relayout)
  for num_chunks in sizes.chunks:
    yield _rename_case(num_chunks)
  yield from unstack_cases.make(
    sizes.scanned, programs.relayout, programs.codec_bound, large=large
  )
  yield from trainer_cases.make(sizes.trained)


def _stack_cases(sizes: Sizes, program: Path) -> Iterator[Case]:
  rows, columns = sizes.shape
  source = Source(
    functools.partial(
      orbax_way.write_run, num_layers=sizes.num_layers, shape=sizes.shape
    ),
    num_scratch_bytes=3 * sizes.num_layers * 3 * rows * columns * 4,
  )
  check = functools.partial(_verify, program)
  orbax = Side(
    "Orbax: restore, stack, save", sides.warm(orbax_way.restore_stack_save)
  )
  yield Case(
    source,
    Side("relayout", sides.warm(relayout_way.convert_to_scanned), check),
    {"stack": orbax},
  )
  copy = Side(
    "cp -r",
    sides.program(
      lambda source, target: ["cp", "-r", str(source), str(target)],
      synced=False,
    ),
  )
  yield Case(
    source,
    Side(
      "relayout",
      sides.program(
        lambda source, target: [
          str(program),
          "convert",
          str(source),
          str(target),
          "--to=maxtext",
          "--scan_layers=true",
          "--layer_pattern=flat",
        ],
        synced=True,
      ),
      check,
    ),
    {"stack_process": copy},
  )


def _verify(program: Path, source: Path, target: Path) -> None:
  subprocess.run(
    [program, "verify", source, target],
    env=sides.clean_environment(),
    stdout=subprocess.DEVNULL,
    check=True,
  )


def _rename_case(num_chunks: int) -> Case:
  source = Source(
    functools.partial(tensorstore_way.write_chunks, num_chunks=num_chunks),
    num_scratch_bytes=2 * num_chunks * 300,
  )
  check = functools.partial(sides.call, tensorstore_way.check_renamed)
  peer = Side(
    "TensorStore: copy key by key",
    sides.fresh(tensorstore_way.copy_by_key),
    check,
  )
  return Case(
    source,
    Side("relayout", sides.fresh(relayout_way.rename_chunks), check),
    {
      f"rename_{num_chunks}": peer if num_chunks <= _MAX_COPIED_BY_KEY else None
    },
  )
