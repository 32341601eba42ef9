"""Carries a directory along as it is: a data iterator's state, for one."""

import os
from collections.abc import Iterator
from pathlib import Path

from relayout.convert import link
from relayout.errors import UnsupportedError

_MAX_DEPTH = 64


def carry(source: Path, target: Path) -> list[link.Transfer]:
  """Makes `target` a directory that holds what `source` does.

  Raises:
    OSError: If a file can't be read or written.
    UnsupportedError: If there is something that is no file or directory.
  """
  return [*_carry(source, target, _MAX_DEPTH)]


def _carry(source: Path, target: Path, depth: int) -> Iterator[link.Transfer]:
  if not depth:
    raise UnsupportedError(f"{source}: directories nested too deep")
  target.mkdir()
  with os.scandir(source) as entries:
    for entry in sorted(entries, key=lambda entry: entry.name):
      path = Path(entry.path)
      if entry.is_symlink():
        raise UnsupportedError(
          f"{path}: a symbolic link, in a directory that is carried along; "
          "replace it by what it points to, or move the directory away"
        )
      if entry.is_dir():
        yield from _carry(path, target / entry.name, depth - 1)
      elif entry.is_file():
        yield link.transfer(path, target / entry.name)
      else:
        raise UnsupportedError(f"{path}: neither a file nor a directory")
