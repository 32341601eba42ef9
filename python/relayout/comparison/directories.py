"""Compares directories file by file."""

import os
from collections.abc import Iterator
from pathlib import Path

from relayout.errors import CorruptCheckpointError

_READ_BYTES = 1 << 20


def unlike_files(a: Path, b: Path) -> Iterator[tuple[str, str]]:
  """Yields the files in which two directories differ, each with the reason.

  Raises:
    CorruptCheckpointError: If a directory holds what is no regular file.
  """
  first, second = _files(a), _files(b)
  for name in sorted(first.keys() | second.keys()):
    if name not in second:
      yield name, f"missing below {b}"
    elif name not in first:
      yield name, f"missing below {a}"
    elif not _is_equal(first[name], second[name]):
      yield name, "other bytes"


def _files(root: Path) -> dict[str, Path]:
  found = {}
  for directory, _, names in os.walk(root):
    for name in names:
      path = Path(directory, name)
      if not path.is_file():
        raise CorruptCheckpointError(f"{path}: not a regular file")
      found[str(path.relative_to(root))] = path
  return found


def _is_equal(a: Path, b: Path) -> bool:
  if a.stat().st_size != b.stat().st_size:
    return False
  if a.samefile(b):
    return True
  with a.open("rb") as one, b.open("rb") as other:
    while data := one.read(_READ_BYTES):
      if data != other.read(_READ_BYTES):
        return False
  return True
