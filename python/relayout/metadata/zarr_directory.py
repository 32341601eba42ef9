"""zarr arrays stored as directories, without OCDBT: `<name>/.zarray`."""

import dataclasses
import os
import pathlib
from collections.abc import Iterator

from relayout import errors

METADATA_KEYS = (".zarray", "zarr.json")

_MAX_DEPTH = 16
_NOT_CHUNKS = frozenset((*METADATA_KEYS, ".zattrs", ".zgroup"))


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
  """What a directory tree holds.

  Attributes:
    arrays: Name of each array and path of its metadata, sorted by name.
    databases: Names of directories that are OCDBT databases.
  """

  arrays: tuple[tuple[str, pathlib.Path], ...]
  databases: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ChunkFiles:
  """Number of the chunk files of an array, and bytes in all."""

  num_chunks: int
  num_bytes: int


def find_arrays(directory: pathlib.Path) -> Found:
  """Returns the arrays below `directory`; a slash in a name is a directory.

  Raises:
    CorruptCheckpointError: If a directory can't be listed.
  """
  arrays: list[tuple[str, pathlib.Path]] = []
  databases: list[str] = []
  for path, files in _walk(directory, _MAX_DEPTH, set()):
    name = path.relative_to(directory).as_posix()
    keys = [key for key in METADATA_KEYS if key in files]
    if len(keys) > 1:
      raise errors.CorruptCheckpointError(
        f"{path}: holds both .zarray and zarr.json; remove the one that is"
        " not of this array"
      )
    if keys and path != directory:
      arrays.append((name, path / keys[0]))
    if "manifest.ocdbt" in files:
      databases.append(name)
  return Found(tuple(sorted(arrays)), tuple(sorted(databases)))


def measure_chunks(array: pathlib.Path) -> ChunkFiles:
  """Returns how many chunks the directory of an array holds.

  Raises:
    CorruptCheckpointError: If a directory can't be listed.
  """
  num_chunks = num_bytes = 0
  for path, files in _walk(array, _MAX_DEPTH, set(), into_arrays=True):
    for name in files - _NOT_CHUNKS:
      num_chunks += 1
      num_bytes += _num_bytes(path / name)
  return ChunkFiles(num_chunks, num_bytes)


def _num_bytes(path: pathlib.Path) -> int:
  try:
    return path.stat().st_size
  except OSError as error:
    raise errors.CorruptCheckpointError(
      f"{path}: can't be read ({error.strerror})"
    ) from error


def _walk(
  directory: pathlib.Path,
  depth: int,
  seen: set[tuple[int, int]],
  *,
  into_arrays: bool = False,
) -> Iterator[tuple[pathlib.Path, set[str]]]:
  """Yields each directory and the names of its files; each directory once."""
  try:
    status = directory.stat()
    if (status.st_dev, status.st_ino) in seen:
      return  # a symbolic link to a directory further up
    seen.add((status.st_dev, status.st_ino))
    with os.scandir(directory) as entries:
      found = list(entries)
    files = {entry.name for entry in found if entry.is_file()}
    children = [entry.name for entry in found if entry.is_dir()]
  except OSError as error:
    raise errors.CorruptCheckpointError(
      f"{directory}: can't be listed ({error.strerror})"
    ) from error
  yield directory, files
  if depth == 0 or (
    not into_arrays and files.intersection((*METADATA_KEYS, "manifest.ocdbt"))
  ):
    return
  for name in sorted(children):
    yield from _walk(directory / name, depth - 1, seen, into_arrays=into_arrays)
