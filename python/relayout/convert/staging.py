"""A directory that appears whole or not at all."""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relayout.errors import TargetExistsError
from relayout.metadata.directory import TEMPORARY_PREFIX

PARTS = ".parts"
"""Directory of what a later run can go on with; removed at the end."""

# Syncs that run side by side share a commit of the file system's journal.
_MAX_SYNCS = 16
_LOCK = ".lock"


@contextlib.contextmanager
def staged(target: Path, identity: str) -> Iterator[Path]:
  """Yields a temporary sibling of `target` that takes its name at the end.

  If the body raises, the sibling is removed, and so are the parents that did
  not exist before, unless there is something in `PARTS`: then that is kept,
  and the next call of the same identity finds it.  All that the body made is
  synced before it gets its name.

  Args:
    target: Directory to make.
    identity: Tells this work from others, in hexadecimal digits.

  Raises:
    TargetExistsError: If `target` exists already, or appears meanwhile, or
      another process is at the same work.
  """
  made: list[Path] = []
  temporary = target.parent / f"{TEMPORARY_PREFIX}{target.name}-{identity[:16]}"
  try:
    _make_parents(target.parent, made)
    remove_stale(target, but=temporary.name)
    with _locked(temporary):
      try:
        yield temporary
        shutil.rmtree(temporary / PARTS, ignore_errors=True)
        sync_tree(temporary)
        _publish(temporary, target)
        # Not before: else another run would take the directory over.
        (target / _LOCK).unlink(missing_ok=True)
      except BaseException:
        _clear(temporary)
        raise
  except BaseException:
    for parent in reversed(made):
      with contextlib.suppress(OSError):
        parent.rmdir()
    raise
  _sync_all([target.parent, *(parent.parent for parent in made)])


@contextlib.contextmanager
def _locked(temporary: Path) -> Iterator[None]:
  """Makes the directory, or takes over one that nobody works in.

  Of what it held, only `PARTS` is left.
  """
  descriptor = _make_with_lock(temporary)
  try:
    if not _lock(descriptor):
      raise TargetExistsError(
        f"{temporary}: another process is writing it at this moment"
      )
    for entry in os.scandir(temporary):
      if entry.name not in (PARTS, _LOCK):
        _remove(Path(entry.path))
    yield
  finally:
    os.close(descriptor)


def _make_with_lock(directory: Path) -> int:
  """Makes a directory with a lock file; returns the open file."""
  while True:
    directory.mkdir(exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # removed as stale meanwhile
      flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
      return os.open(directory / _LOCK, flags, 0o600)


def _lock(descriptor: int) -> bool:
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return False
  return True


def _clear(temporary: Path) -> None:
  """Removes what is of no use to a later run."""
  parts = temporary / PARTS
  if not parts.is_dir() or not any(parts.iterdir()):
    shutil.rmtree(temporary, ignore_errors=True)
    return
  for entry in os.scandir(temporary):
    if entry.name not in (PARTS, _LOCK):
      _remove(Path(entry.path))


def remove_stale(target: Path, but: str = "") -> None:
  """Removes what other work for `target` left that nobody works in.

  Args:
    target: Directory that was to be made.
    but: Name of a sibling to leave.
  """
  for stale in target.parent.glob(f"{TEMPORARY_PREFIX}{target.name}-*"):
    if stale.name == but or not stale.is_dir() or stale.is_symlink():
      continue
    try:
      descriptor = os.open(stale / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
      with contextlib.suppress(OSError):
        stale.rmdir()  # nothing in it yet; else it is none of ours
      continue
    try:
      if _lock(descriptor):
        shutil.rmtree(stale, ignore_errors=True)
    finally:
      os.close(descriptor)


def _remove(path: Path) -> None:
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path)
  else:
    path.unlink()


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


@contextlib.contextmanager
def in_place(directory: Path) -> Iterator[None]:
  """Says so if what is written vanishes meanwhile.

  Raises:
    OSError: Instead of an error of the caller's, if `directory` is gone.
  """
  try:
    yield
  except ValueError as error:
    raise FileNotFoundError(
      errno.ENOENT, f"vanished while it was written ({error})", directory
    ) from error


def sync_tree(path: Path) -> None:
  """Makes a directory and all below it durable, the bytes of files too."""
  _sync_all(
    Path(directory, name)
    for directory, _, files in os.walk(path)
    for name in (".", *files)
  )


def _sync_all(paths: Iterable[Path]) -> None:
  with ThreadPoolExecutor(_MAX_SYNCS) as executor:
    for _ in executor.map(sync, paths):
      pass  # Raises what `sync` raised.


def sync(path: Path) -> None:
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
