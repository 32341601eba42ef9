"""The binaries: one program of MaxText each."""

import sys
from collections.abc import Callable, Sequence

from relayout.errors import RelayoutError
from relayout.trainers.maxtext import programs


def main(name: str) -> Callable[[Sequence[str]], None]:
  """Returns the `main` of a binary, for absl.

  Args:
    name: The program.
  """

  def run(argv: Sequence[str]) -> None:
    try:
      programs.run(name, argv)
    except RelayoutError as error:
      cause = f"\ncaused by: {error.__cause__}" if error.__cause__ else ""
      sys.exit(f"{name}: {error}{cause}")

  return run
