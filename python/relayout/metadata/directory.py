"""A directory's entries, read once, and what they make it look like."""

import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import Self

from relayout import errors
from relayout.metadata.zarr_array import METADATA_KEYS

TEMPORARY_PREFIX = ".relayout-tmp-"
"""What the directories that relayout is still writing begin with."""

_ORBAX_TEMPORARY = ".orbax-checkpoint-tmp"
_ITEM_FILES = ("manifest.ocdbt", "_METADATA")
_MAX_PROBED = 64


def is_temporary(name: str) -> bool:
  """Returns whether a directory of that name holds an unfinished save."""
  return _ORBAX_TEMPORARY in name or name.startswith(TEMPORARY_PREFIX)


@dataclasses.dataclass(frozen=True, slots=True)
class Directory:
  """A directory, listed.

  Attributes:
    path: Where it is.
    files: Names of its files.
    directories: Names of its directories, links to directories included.
  """

  path: pathlib.Path
  files: frozenset[str]
  directories: frozenset[str]

  @classmethod
  def read(cls, path: pathlib.Path) -> Self:
    """Returns the directory at `path`.

    Raises:
      NotACheckpointError: If it can't be listed.
    """
    try:
      with os.scandir(path) as entries:
        is_directory = {entry.name: _is_directory(entry) for entry in entries}
    except OSError as error:
      raise errors.NotACheckpointError(
        f"{path}: can't be listed ({error.strerror})"
      ) from error
    return cls(
      path,
      frozenset(name for name, is_dir in is_directory.items() if not is_dir),
      frozenset(name for name, is_dir in is_directory.items() if is_dir),
    )

  @classmethod
  def read_or_none(cls, path: pathlib.Path) -> Self | None:
    """Returns the directory at `path`, or None if it can't be listed."""
    try:
      return cls.read(path)
    except errors.NotACheckpointError:
      return None

  @property
  def name(self) -> str:
    """Its own name, also if the path ends in `.` or `..`."""
    return os.path.basename(os.path.abspath(self.path))

  @property
  def names(self) -> frozenset[str]:
    """Names of all entries."""
    return self.files | self.directories

  @property
  def temporary(self) -> tuple[str, ...]:
    """Names of directories that hold unfinished saves, sorted."""
    return tuple(sorted(filter(is_temporary, self.directories)))

  @property
  def is_item(self) -> bool:
    """Whether it holds arrays: an OCDBT database, or a directory an array."""
    if self.files.intersection(_ITEM_FILES):
      return True
    if any(name.startswith("ocdbt.process_") for name in self.directories):
      return True
    if self.files.intersection(METADATA_KEYS):
      return False  # a single array
    # Whoever holds arrays holds little else, so a few entries tell.
    return any(
      os.path.exists(self.path / name / key)
      for name in sorted(self.directories)[:_MAX_PROBED]
      for key in METADATA_KEYS
    )

  def has(self, name: str) -> bool:
    """Returns whether it holds a file of that name."""
    return name in self.files

  def child(self, name: str) -> "Directory | None":
    """Returns the directory of that name in it, if it can be listed."""
    if name not in self.directories:
      return None
    return Directory.read_or_none(self.path / name)

  def unlisted(self) -> "Iterator[errors.NotACheckpointError]":
    """Yields an error for each of its directories that can't be listed."""
    for name in sorted(self.directories):
      try:
        if not is_temporary(name):
          Directory.read(self.path / name)
      except errors.NotACheckpointError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
          yield error

  def children(self) -> Iterator["Directory"]:
    """Yields its directories by name, without those of unfinished saves."""
    for name in sorted(self.directories):
      if not is_temporary(name):
        child = Directory.read_or_none(self.path / name)
        if child is not None:
          yield child


def _is_directory(entry: os.DirEntry[str]) -> bool:
  try:
    return entry.is_dir()
  except OSError:
    return False  # a link that leads in a circle
