"""A line that says what is going on, on a terminal and nowhere else."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from relayout.cli import table


@contextlib.contextmanager
def line() -> Iterator[Callable[[str], None]]:
  """Yields a function that shows a message on one line of the terminal.

  Does nothing when standard error is no terminal; the line is cleared at the
  end.
  """
  if not sys.stderr.isatty():
    yield lambda message: None
    return
  try:
    yield _show
  finally:
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _show(message: str) -> None:
  width = (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
  text = table.printable(message).replace("\n", " ")[: max(width, 0)]
  print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
