"""Runs the command line in forked processes of bounded memory and time.

Starting Python and importing the program takes far longer than most cases, so
one process imports it once and forks a child for each.  A child that crashes
harms nobody, and its limits are its own.
"""

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
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
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
      ended = _run_child(request, out.fileno(), err.fileno())
      ended |= {"stdout": _text(out), "stderr": _text(err)}
    print(json.dumps(ended), flush=True)


def _text(file: Any) -> str:
  file.seek(0)
  return file.read().decode(errors="backslashreplace")


def _run_child(request: dict[str, Any], out: int, err: int) -> dict[str, Any]:
  started = time.monotonic()
  pid = os.fork()
  if pid == 0:
    os.dup2(out, 1)
    os.dup2(err, 2)
    os._exit(_child(request))
  status, usage = _wait(pid, started + SECONDS)
  return {
    "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
    "seconds": time.monotonic() - started,
    "peak_bytes": usage.ru_maxrss * 1024,
  }


def _wait(pid: int, deadline: float) -> tuple[int, resource.struct_rusage]:
  """Waits for a child; stops it after the deadline."""
  while time.monotonic() < deadline:
    done, status, usage = os.wait4(pid, os.WNOHANG)
    if done:
      return status, usage
    time.sleep(0.001)
  os.kill(pid, signal.SIGKILL)
  _, status, usage = os.wait4(pid, 0)
  return status, usage


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
