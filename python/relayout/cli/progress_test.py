"""The line of progress, on a terminal of its own and elsewhere."""

import fcntl
import os
import subprocess
import sys
import termios

import pytest

from tests.support import golden

_CLEAR = "\r\x1b[K"
_COLUMNS = 40

_SHOW = """
import sys
from relayout.cli import progress
with progress.line() as show:
  for message in sys.argv[1:]:
    if message == "fail":
      raise SystemExit(3)
    show(message)
"""

_CLI = """
import sys
from relayout.cli import main
sys.exit(main.run(["relayout", *sys.argv[1:]]))
"""


def _environment():
  environment = {
    name: value for name, value in os.environ.items() if name != "COLUMNS"
  }
  return environment | {"PYTHONPATH": os.pathsep.join(sys.path)}


def _on_terminal(code, *arguments, stdout=subprocess.PIPE):
  """Runs Python code whose stderr is a terminal of `_COLUMNS` columns.

  Returns:
    The exit code, what was printed if stdout is a pipe, and what the terminal
    showed. With stdout=None stdout is the terminal too.
  """
  controller, terminal = os.openpty()
  rows_and_columns = b"".join(
    number.to_bytes(2, sys.byteorder) for number in (24, _COLUMNS, 0, 0)
  )
  fcntl.ioctl(terminal, termios.TIOCSWINSZ, rows_and_columns)
  with subprocess.Popen(
    [sys.executable, "-c", code, *map(str, arguments)],
    env=_environment(),
    stdin=terminal,
    stdout=terminal if stdout is None else stdout,
    stderr=terminal,
  ) as process:
    os.close(terminal)
    shown = _read_all(controller)
    printed = process.stdout.read().decode() if process.stdout else ""
  os.close(controller)
  return process.returncode, printed, shown


def _read_all(controller):
  """Returns all that is written to a terminal, until its last user closes."""
  parts = []
  while True:
    try:
      part = os.read(controller, 1 << 16)
    except OSError:  # EIO: nobody has it open any more.
      part = b""
    if not part:
      return b"".join(parts).decode()
    parts.append(part)


def _piped(code, *arguments):
  return subprocess.run(
    [sys.executable, "-c", code, *map(str, arguments)],
    env=_environment(),
    capture_output=True,
    text=True,
    check=False,
  )


def test_messages_replace_each_other_and_go_away():
  code, printed, shown = _on_terminal(_SHOW, "reading 1", "writing 2")
  assert code == 0
  assert printed == ""
  assert shown == f"{_CLEAR}reading 1{_CLEAR}writing 2{_CLEAR}"


def test_the_line_goes_away_after_an_error():
  code, _, shown = _on_terminal(_SHOW, "reading 1", "fail")
  assert code == 3
  assert shown == f"{_CLEAR}reading 1{_CLEAR}"


def test_a_long_message_stays_on_one_line():
  _, _, shown = _on_terminal(_SHOW, "x" * 500, stdout=None)
  assert shown == f"{_CLEAR}{'x' * (_COLUMNS - 1)}{_CLEAR}"


def test_names_can_not_steer_the_terminal():
  _, _, shown = _on_terminal(_SHOW, "reading \x1b[31mred")
  line = shown.removeprefix(_CLEAR).removesuffix(_CLEAR)
  assert "\x1b" not in line
  assert line.startswith("reading ")


def test_elsewhere_nothing_is_shown():
  done = _piped(_SHOW, "reading 1", "writing 2")
  assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("command", ["convert", "verify"])
def test_commands_show_what_they_do(tmp_path, command):
  source = golden.checkpoints("sft_scan_noclip")
  arguments = ["convert", source, tmp_path / "out", "--to=maxtext"]
  if command == "verify":
    assert _piped(_CLI, *arguments).returncode == 0
    arguments = ["verify", source, tmp_path / "out"]
  code, printed, shown = _on_terminal(_CLI, *arguments)
  assert code == 0
  assert "\x1b" not in printed
  assert printed
  assert shown.endswith(_CLEAR)
  lines = [line for line in shown.split(_CLEAR) if line]
  assert lines
  assert all("\n" not in line for line in lines)
  if command == "convert":
    verbs = [line.partition(" ")[0] for line in lines]
    assert verbs == ["reading", "writing"]
  done = _piped(_CLI, "verify", source, tmp_path / "out")
  assert (done.returncode, done.stderr) == (0, "")
