"""`relayout inspect | convert | verify | diff`: the entry point."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from absl import app

from relayout.cli import arguments, commands, table
from relayout.errors import RelayoutError

EXIT_UNUSABLE = 2
"""Exit code for unusable input or wrong usage."""

EXIT_INTERRUPTED = 130

EXIT_DEFECT = 70
"""Exit code for an error of relayout itself; 1 means differences."""


def run(argv: Sequence[str]) -> int:
  """Runs a command line, the program's name first; returns the exit code."""
  return _dispatch(arguments.parse(argv))


def _dispatch(parsed: argparse.Namespace) -> int:
  try:
    return commands.COMMANDS[parsed.command](parsed)
  except KeyboardInterrupt:
    print(
      f"relayout {parsed.command}: interrupted; steps that are complete stay, "
      "and the same command goes on from there",
      file=sys.stderr,
    )
    return EXIT_INTERRUPTED
  except MemoryError:
    return _unusable(parsed, "out of memory; is the checkpoint damaged?")
  except RelayoutError as error:
    return _unusable(parsed, str(error))
  except OSError as error:
    return _unusable(parsed, _describe(error))
  except Exception:  # Anything else is a defect, and never "differences".
    traceback.print_exc()
    print("relayout: this is a defect of relayout", file=sys.stderr)
    return EXIT_DEFECT


def _describe(error: OSError) -> str:
  """Returns an error of the system with the files first."""
  if error.filename is None or error.strerror is None:
    return str(error)
  files = [error.filename, *([error.filename2] if error.filename2 else [])]
  return f"{' -> '.join(map(str, files))}: {error.strerror}"


def _unusable(parsed: argparse.Namespace, message: str) -> int:
  sys.stdout.flush()
  text = table.printable(f"relayout {parsed.command}: {message}")
  print(text, file=sys.stderr)
  return EXIT_UNUSABLE


def enter_callers_directory() -> None:
  """Makes paths relative to where the user stands.

  Under `bazel run` a program starts in its runfiles.
  """
  directory = os.environ.get("BAZELW_CWD") or os.environ.get(
    "BUILD_WORKING_DIRECTORY"
  )
  if directory:
    os.chdir(directory)


def main() -> None:
  """Entry point of the console script."""
  # An interrupted conversion must get the chance to remove what it began.
  signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
  enter_callers_directory()
  app.run(_dispatch, flags_parser=arguments.parse)


if __name__ == "__main__":
  main()
