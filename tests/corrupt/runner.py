"""Runs the command line in forked processes of bounded memory and time.

Starting Python and importing the program takes far longer than most cases, so
one process imports it once and forks a child for each.  A child that crashes
harms nobody, and its limits are its own.
"""

import dataclasses
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ADDRESS_SPACE = 2 << 30
"""Bytes of address space that a command may use."""

SECONDS = 60.0
"""A command that takes longer hangs."""

_CRASH = 70


@dataclasses.dataclass(frozen=True)
class Result:
  """What a command did.

  Attributes:
    code: Exit code; None if it died by a signal or was stopped.
    stdout: What it printed.
    stderr: What it complained about.
    seconds: Wall time.
    peak_bytes: Largest resident size.
  """

  code: int | None
  stdout: str
  stderr: str
  seconds: float
  peak_bytes: int

  @property
  def crashed(self) -> bool:
    """Whether it ended otherwise than with an exit code of its own."""
    return self.code in (None, _CRASH) or "Traceback" in self.stderr


class Runner:
  """A process that has imported the program and forks for each command."""

  def __init__(self) -> None:
    self._process = subprocess.Popen(
      [sys.executable, __file__],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
      text=True,
    )

  def __enter__(self) -> "Runner":
    return self

  def __exit__(self, *_args: object) -> None:
    assert self._process.stdin is not None
    self._process.stdin.close()
    self._process.wait()

  def run(
    self,
    *argv: str | os.PathLike[str],
    address_space: int = ADDRESS_SPACE,
    file_size: int | None = None,
    setup: str = "",
  ) -> Result:
    """Runs `relayout argv`.

    Args:
      *argv: The command line, without the program's name.
      address_space: Limit of the child's address space, bytes.
      file_size: Limit of the size of a file it writes, bytes; a write beyond
        fails with EFBIG, as one to a full disk does with ENOSPC.
      setup: Python to execute in the child before, to make calls fail.
    """
    request = {
      "argv": [os.fspath(arg) for arg in argv],
      "address_space": address_space,
      "file_size": file_size,
      "setup": setup,
    }
    assert self._process.stdin is not None
    assert self._process.stdout is not None
    print(json.dumps(request), file=self._process.stdin, flush=True)
    return Result(**json.loads(self._process.stdout.readline()))


def _serve() -> None:
  # The modules that the commands load when they run.
  import relayout.cli.main
  import relayout.convert.run
  import relayout.inspection.inspect
  import relayout.verify  # noqa: F401

  for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(_run_child(request)), flush=True)


def _run_child(request: dict[str, Any]) -> dict[str, Any]:
  """Runs one command; its limit on the size of files is none on pipes."""
  started = time.monotonic()
  out, err = os.pipe(), os.pipe()
  pid = os.fork()
  if pid == 0:
    os.dup2(out[1], 1)
    os.dup2(err[1], 2)
    os._exit(_child(request))
  os.close(out[1])
  os.close(err[1])
  texts = _read_all((out[0], err[0]), started + SECONDS)
  if texts is None:
    os.kill(pid, signal.SIGKILL)
  _, status, usage = os.wait4(pid, 0)
  stdout, stderr = texts or ("", f"stopped after {SECONDS} s")
  return {
    "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
    "stdout": stdout,
    "stderr": stderr,
    "seconds": time.monotonic() - started,
    "peak_bytes": usage.ru_maxrss * 1024,
  }


def _read_all(pipes: Sequence[int], deadline: float) -> list[str] | None:
  """Reads pipes to their ends; returns None after the deadline."""
  parts: dict[int, bytes] = dict.fromkeys(pipes, b"")
  still_open = set(pipes)
  while still_open and time.monotonic() < deadline:
    ready, _, _ = select.select(still_open, (), (), 1)
    for pipe in ready:
      data = os.read(pipe, 1 << 16)
      parts[pipe] += data
      if not data:
        still_open.remove(pipe)
  for pipe in pipes:
    os.close(pipe)
  if still_open:
    return None
  return [parts[pipe].decode(errors="backslashreplace") for pipe in pipes]


def _child(request: dict[str, Any]) -> int:
  """Runs one command and returns its exit code."""
  from relayout.cli import main

  try:
    _set_limits(request)
    exec(request["setup"], {})
    code = main.run(["relayout", *request["argv"]])
  except SystemExit as error:
    code = error.code if isinstance(error.code, int) else 1
  except BaseException:
    traceback.print_exc()
    code = _CRASH
  for stream in (sys.stdout, sys.stderr):
    stream.flush()
  return code


def _set_limits(request: dict[str, Any]) -> None:
  def limit(kind: int, value: int) -> None:
    resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))

  limit(resource.RLIMIT_CORE, 0)
  limit(resource.RLIMIT_AS, request["address_space"])
  if request["file_size"] is not None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit(resource.RLIMIT_FSIZE, request["file_size"])


def convert_arguments(
  source: Path, target: Path, *options: str
) -> Sequence[str | Path]:
  """Returns the arguments that convert `source`."""
  return ("convert", source, target, "--to=maxtext", *options)


if __name__ == "__main__":
  _serve()
