"""How one side of a comparison is run: each in processes of its own.

Peak memory is that of such a process, so whatever is loaded by another side,
or by this program, does not count.
"""

import contextlib
import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench import anonymous
from tests.bench.durable import sync_tree
from tests.bench.samples import Sample

type Run = Callable[[Path, Path], Sample]
"""Makes a target from a source, once."""

type Timed = Callable[[Path, Path], float]
"""Makes a target from a source; returns the seconds of what counts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
  """One way from a source to a target.

  Attributes:
    name: For the table.
    start: Makes it ready to run.
    check: Raises if the target is not what the source calls for.
  """

  name: str
  start: Callable[[], AbstractContextManager[Run]]
  check: Callable[[Path, Path], None] | None = None


def call(function: Callable[..., Any], *arguments: Any) -> Any:
  """Calls a function of a module in a new process; returns its result."""
  with _process() as process:
    return process.submit(function, *arguments).result()


def warm(function: Timed) -> Callable[[], AbstractContextManager[Run]]:
  """All runs in one process, which has imported what it needs by then."""

  @contextlib.contextmanager
  def start() -> Iterator[Run]:
    with _process() as process:
      yield lambda source, target: _sample(process, function, source, target)

  return start


def fresh(function: Timed) -> Callable[[], AbstractContextManager[Run]]:
  """Each run in a new process, whose start does not count."""

  def run(source: Path, target: Path) -> Sample:
    with _process() as process:
      return _sample(process, function, source, target)

  return lambda: contextlib.nullcontext(run)


def program(
  arguments: Callable[[Path, Path], Sequence[str]],
  *,
  synced: bool,
  watched: bool = False,
) -> Callable[[], AbstractContextManager[Run]]:
  """Each run a program, from its start to its end.

  Args:
    arguments: Of source and target, the program first.
    synced: Whether it syncs what it writes; else that is done, and counts.
    watched: Whether its anonymous memory is watched, all the time.
  """

  def run(source: Path, target: Path) -> Sample:
    started = time.perf_counter()
    peaks = _run_program(arguments(source, target), watched=watched)
    if not synced:
      sync_tree(target)
    return Sample(time.perf_counter() - started, *peaks)

  return lambda: contextlib.nullcontext(run)


def _process() -> ProcessPoolExecutor:
  return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _sample(
  process: ProcessPoolExecutor, function: Timed, source: Path, target: Path
) -> Sample:
  seconds = process.submit(function, source, target).result()
  return Sample(seconds, process.submit(_peak_bytes).result())


def _peak_bytes() -> int:
  """Returns the peak resident memory of this process.

  Unlike getrusage, this does not begin with what the parent held.
  """
  status = Path("/proc/self/status").read_text()
  line = next(x for x in status.splitlines() if x.startswith("VmHWM:"))
  return int(line.split()[1]) * 1024


def _run_program(
  arguments: Sequence[str], *, watched: bool
) -> tuple[int, int | None]:
  """Returns the peaks of a program's resident and anonymous memory, bytes."""
  with subprocess.Popen(
    arguments,
    env=clean_environment(),
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
  ) as process:
    assert process.stderr is not None
    watch = anonymous.watch(process.pid) if watched else None
    message = process.stderr.read()
    # Before it is waited for: until then, nothing else has its number.
    peak = watch() if watch else None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
  if process.returncode != 0:
    raise RuntimeError(f"{arguments[0]} failed: {message.decode()}")
  return usage.ru_maxrss * 1024, peak


def clean_environment() -> dict[str, str]:
  """Returns the environment without what Bazel's launchers add to it."""
  prefixes = ("BAZELW_", "BUILD_", "PYTHON", "RUNFILES_")
  return {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(prefixes)
  }
