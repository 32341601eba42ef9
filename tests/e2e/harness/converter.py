"""Runs the converter under test, as its users do: the command line.

The program is `$RELAYOUT` if that is set (a command), else the launcher that
Bazel built, else the module with this interpreter.
"""

import os
import pathlib
import shlex
import subprocess
import sys

_LAUNCHER = "python/relayout/cli/relayout"


def convert(
  source: pathlib.Path, target: pathlib.Path, *flags: str, to: str = "maxtext"
) -> subprocess.CompletedProcess[str]:
  """Converts the checkpoints below `source` into `target`, for program `to`.

  Raises:
    AssertionError: If the converter fails; with what it printed.
  """
  command = [
    *_program(),
    "convert",
    str(source),
    str(target),
    f"--to={to}",
    *flags,
  ]
  done = subprocess.run(
    command,
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
    check=False,
  )
  print("$", shlex.join(command), done.stdout, done.stderr, sep="\n")
  assert done.returncode == 0, (
    f"exit code {done.returncode} of {shlex.join(command)}\n"
    f"{done.stdout}\n{done.stderr}"
  )
  return done


def _program() -> list[str]:
  if command := os.environ.get("RELAYOUT"):
    return shlex.split(command)
  launcher = _runfiles_root() / _LAUNCHER
  if launcher.is_file():
    return [str(launcher)]
  return [sys.executable, "-m", "relayout.cli.main"]


def _runfiles_root() -> pathlib.Path:
  """The directory that holds `tests/e2e`: a runfiles tree or the sources."""
  return pathlib.Path(__file__).absolute().parents[3]
