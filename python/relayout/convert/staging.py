"""A directory that appears whole or not at all."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relayout.errors import TargetExistsError
from relayout.metadata.directory import TEMPORARY_PREFIX

# Syncs that run side by side share a commit of the file system's journal.
_MAX_SYNCS = 16


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
  """Yields a temporary sibling of `target` that takes its name at the end.

  If the body raises, the sibling is removed, and so are the parents that did
  not exist before.  All that the body made is synced before it gets its name.

  Raises:
    TargetExistsError: If `target` exists already, or appears meanwhile.
  """
  made: list[Path] = []
  temporary = (
    target.parent / f"{TEMPORARY_PREFIX}{target.name}-{uuid.uuid4().hex[:12]}"
  )
  try:
    _make_parents(target.parent, made)
    temporary.mkdir()
    yield temporary
    sync_tree(temporary)
    _publish(temporary, target)
  except BaseException:
    shutil.rmtree(temporary, ignore_errors=True)
    for parent in reversed(made):
      with contextlib.suppress(OSError):
        parent.rmdir()
    raise
  _sync_all([target.parent, *(parent.parent for parent in made)])


def write_file(path: Path, data: bytes) -> int:
  """Writes a new file, which `staged` will sync; returns its size in bytes."""
  with naming(path), path.open("xb") as file:
    file.write(data)
  return len(data)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
  """Adds the file's name to an error that has none: a full disk, for one."""
  try:
    yield
  except OSError as error:
    if error.filename is not None or error.errno is None:
      raise
    raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def sync_tree(path: Path) -> None:
  """Makes a directory and all below it durable, the bytes of files too."""
  _sync_all(
    Path(directory, name)
    for directory, _, files in os.walk(path)
    for name in (".", *files)
  )


def _sync_all(paths: Iterable[Path]) -> None:
  with ThreadPoolExecutor(_MAX_SYNCS) as executor:
    for _ in executor.map(_sync, paths):
      pass  # Raises what `_sync` raised.


def _sync(path: Path) -> None:
  """Makes the bytes of a file, or the entries of a directory, durable."""
  descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
  try:
    with naming(path):
      os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _make_parents(path: Path, made: list[Path]) -> None:
  """Creates `path` with its parents; adds those that are new, top first."""
  missing = []
  while not path.exists():
    missing.append(path)
    path = path.parent
  for parent in reversed(missing):
    parent.mkdir(exist_ok=True)
    made.append(parent)


def _publish(temporary: Path, target: Path) -> None:
  """Renames; unlike os.rename, refuses an existing directory even if empty."""
  if target.exists() or target.is_symlink():
    raise TargetExistsError(f"{target}: appeared during the conversion")
  temporary.rename(target)
