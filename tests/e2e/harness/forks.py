"""Runs functions in forked children of one process that imported MaxText.

Importing MaxText takes half a minute, a fork takes none of it. A child has a
working directory, a log and an environment of its own, and hands back one
picklable value. The parent must not have touched a JAX device before: its
client does not survive a fork.
"""

import dataclasses
import os
import pathlib
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

_LOG_TAIL_NUM_CHARS = 6000
_POLL_SECONDS = 0.05


class ChildError(AssertionError):
  """A child raised, died or ran out of time. Carries the end of its log."""


@dataclasses.dataclass
class _Job:
  """One function to run, and what became of it."""

  name: str
  function: Callable[[pathlib.Path], Any]
  env: Mapping[str, str]
  timeout_seconds: float
  directory: pathlib.Path
  pid: int | None = None
  started: float = 0.0
  seconds: float = 0.0
  status: int | None = None
  timed_out: bool = False

  @property
  def log(self) -> pathlib.Path:
    return self.directory / "log.txt"

  @property
  def outcome(self) -> pathlib.Path:
    return self.directory / "outcome.pickle"


class ForkPool:
  """Runs submitted functions in order, a few at a time, each in a child."""

  def __init__(
    self, root: pathlib.Path, *, max_running: int, env: Mapping[str, str]
  ):
    """Makes a pool.

    Args:
      root: Children get directories below it.
      max_running: How many children live at a time.
      env: Environment variables of every child, over the parent's.
    """
    self._root = root
    self._max_running = max_running
    self._env = dict(env)
    self._jobs: dict[str, _Job] = {}

  def submit(
    self,
    name: str,
    function: Callable[[pathlib.Path], Any],
    *,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 1200.0,
  ) -> None:
    """Queues `function`, called with the child's working directory."""
    if name in self._jobs:
      return
    self._jobs[name] = _Job(
      name=name,
      function=function,
      env=env or {},
      timeout_seconds=timeout_seconds,
      directory=self._root / name,
    )

  def result(self, name: str) -> Any:
    """Returns what the job's function returned; waits for it.

    Raises:
      ChildError: If it did not return, with the end of its log.
    """
    job = self._jobs[name]
    while job.status is None:
      self._step()
    return _value(job)

  def seconds(self) -> dict[str, float]:
    """Returns how long each finished job took."""
    return {
      name: job.seconds
      for name, job in self._jobs.items()
      if job.status is not None
    }

  def close(self) -> None:
    """Ends the children that still run."""
    for job in self._jobs.values():
      if job.pid is not None and job.status is None:
        os.kill(job.pid, signal.SIGKILL)
        _, job.status = os.waitpid(job.pid, 0)

  def _step(self) -> None:
    """Starts what there is room for and looks once for ended children."""
    running = [
      job
      for job in self._jobs.values()
      if job.pid is not None and job.status is None
    ]
    waiting = [job for job in self._jobs.values() if job.pid is None]
    for job in waiting[: self._max_running - len(running)]:
      self._start(job)
      running.append(job)
    for job in running:
      _poll(job)
    time.sleep(_POLL_SECONDS)

  def _start(self, job: _Job) -> None:
    job.directory.mkdir(parents=True)
    job.started = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
      # Python and JAX warn of the threads that the imports started. None of
      # them holds a lock now: the parent only waits for children.
      warnings.simplefilter("ignore")
      pid = os.fork()
    if pid == 0:
      _run_child(job, {**self._env, **job.env})
    job.pid = pid


def _poll(job: _Job) -> None:
  assert job.pid is not None
  pid, status = os.waitpid(job.pid, os.WNOHANG)
  now = time.monotonic()
  if pid == 0 and now - job.started > job.timeout_seconds:
    job.timed_out = True
    os.kill(job.pid, signal.SIGKILL)
    pid, status = os.waitpid(job.pid, 0)
  if pid:
    job.status = status
    job.seconds = now - job.started


def _run_child(job: _Job, env: Mapping[str, str]) -> None:
  """Runs the function and leaves the process; never returns."""
  code = 1
  try:
    log = os.open(job.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # pytest's capture replaced these objects; their files are not ours.
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.update(env)
    os.environ["HOME"] = os.environ["TMPDIR"] = str(job.directory)
    os.chdir(job.directory)
    outcome = (True, job.function(job.directory))
    code = 0
  except BaseException:
    outcome = (False, traceback.format_exc())
    print(outcome[1], file=sys.stderr)
  try:
    partial = job.outcome.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(outcome))
    partial.rename(job.outcome)
    sys.stdout.flush()
    sys.stderr.flush()
  finally:
    os._exit(code)


def _value(job: _Job) -> Any:
  ok, value = False, None
  if job.outcome.exists():
    ok, value = pickle.loads(job.outcome.read_bytes())
  if ok and job.status == 0:
    return value
  if job.timed_out:
    what = f"ran longer than {job.timeout_seconds:.0f} s and was ended"
  elif value is None:
    what = f"died with wait status {job.status}"
  else:
    what = f"raised\n{value}"
  tail = ""
  if job.log.exists():
    tail = job.log.read_text(errors="replace")[-_LOG_TAIL_NUM_CHARS:]
  raise ChildError(f"{job.name} {what}\n--- the end of its log ---\n{tail}")
