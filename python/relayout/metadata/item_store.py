"""The arrays that an item's store holds, by its own account."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from relayout import _native, errors
from relayout.metadata import small_array, zarr_array
from relayout.tree.array_spec import ArraySpec

if TYPE_CHECKING:
  from relayout._native import ArrayEntry, Listing

MANIFEST_NAME = "manifest.ocdbt"
IN_NO_LISTING = -1
"""`listing` where there is no array, or another program reads it."""

_PROCESS_DIRECTORY = re.compile(r"ocdbt\.process_(\d+)")
_MAX_CHUNK_BYTES = 1 << 26
_MAX_SHOWN = 3


@dataclasses.dataclass(frozen=True, slots=True)
class StoredArray:
  """One array of a store.

  Attributes:
    name: Its name in the store.
    spec: What its metadata says.
    listing: Index into `Store.listings` of the database that holds it.
    other_listings: Further databases that hold some of its chunks: only without
      a root manifest, when several hosts wrote parts of one array.
    num_chunks: Number of chunks stored.
    num_stored_bytes: Size of the stored chunks.
  """

  name: str
  spec: ArraySpec
  listing: int
  other_listings: tuple[int, ...]
  num_chunks: int
  num_stored_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Store:
  """The store of an item.

  Attributes:
    directory: Of the item.
    kind: `ocdbt`, or `zarr` for a directory an array.
    listings: The OCDBT databases, or the directory as if it were one.
    arrays: By name.
    notes: What a user should know.
  """

  directory: pathlib.Path
  kind: Literal["ocdbt", "zarr"]
  listings: tuple["Listing", ...]
  arrays: dict[str, StoredArray]
  notes: tuple[str, ...]

  def read_chunk(self, array: StoredArray, chunk_key: str) -> bytes | None:
    """Returns the stored bytes of a small chunk, or None if it is absent."""
    for listing in (array.listing, *array.other_listings):
      data = _read(self.listings[listing], f"{array.name}/{chunk_key}")
      if data is not None:
        return data
    return None

  def read_small(self, name: str) -> list[int | float]:
    """Returns the elements of a small array in C order.

    Raises:
      CorruptCheckpointError: If a chunk is damaged.
      UnsupportedError: If the array is large, or its data type or codec is not
        decoded one by one.
    """
    array = self.arrays[name]
    return small_array.decode_small_array(
      array.spec,
      lambda chunk_key: self.read_chunk(array, chunk_key),
      f"{self.directory}: {name}",
    )


def open_store(directory: pathlib.Path) -> Store:
  """Returns the store of the item in `directory`; reads no array data.

  Raises:
    CorruptCheckpointError: If the store is damaged.
    NotACheckpointError: If there is none.
    UnsupportedError: If an array is of a kind that relayout doesn't know.
  """
  databases = find_databases(directory)
  if databases:
    return _open_ocdbt(directory, databases)
  store = _open_zarr(directory)
  if not store.arrays:
    raise errors.NotACheckpointError(
      f"{directory}: holds no arrays: neither a file {MANIFEST_NAME} (OCDBT)"
      " nor a directory with .zarray or zarr.json for each array"
    )
  return store


def find_databases(directory: pathlib.Path) -> tuple[pathlib.Path, ...]:
  """Returns the directories of the OCDBT databases that make up the item.

  That is the item's own; without a merged manifest, those of each host.

  Raises:
    CorruptCheckpointError: If a manifest is no regular file.
  """
  if _has_manifest(directory):
    return (directory,)
  found: list[tuple[int, pathlib.Path]] = []
  for child in directory.iterdir():
    match = _PROCESS_DIRECTORY.fullmatch(child.name)
    if match and _has_manifest(child):
      found.append((int(match[1]), child))
  return tuple(child for _, child in sorted(found))


def _has_manifest(directory: pathlib.Path) -> bool:
  """Whether a database is there; a pipe, say, is no manifest and no absence."""
  path = directory / MANIFEST_NAME
  if path.is_file():
    return True
  if os.path.lexists(path):
    raise errors.CorruptCheckpointError(f"{path}: not a regular file")
  return False


class _Parser:
  """Parses array metadata; layers often share theirs to the byte."""

  def __init__(self) -> None:
    self._specs: dict[tuple[str, bytes], ArraySpec] = {}

  def __call__(self, metadata_key: str, data: bytes) -> ArraySpec:
    key = metadata_key.rpartition("/")[2], data
    spec = self._specs.get(key)
    if spec is None:
      spec = zarr_array.parse_array_metadata(metadata_key, data)
      self._specs[key] = spec
    return spec


def _list(
  path: pathlib.Path,
  native: "Callable[[pathlib.Path], Listing]" = _native.list_database,
) -> "Listing":
  """Returns the database in directory `path`; errors name it."""
  try:
    return native(path)
  except (errors.CorruptCheckpointError, errors.UnsupportedError) as error:
    raise type(error)(f"{path}: {error}") from error
  except OSError as error:
    raise errors.CorruptCheckpointError(
      f"{path}: can't be read ({error})"
    ) from error


def _read(listing: "Listing", key: str) -> bytes | None:
  """Returns the value under `key`, or None without one; errors name both."""
  try:
    _check_small(listing.num_value_bytes(key.encode()))
    return listing.read(key.encode())
  except KeyError:
    return None
  except (errors.CorruptCheckpointError, OSError) as error:
    raise errors.CorruptCheckpointError(
      f"{listing.directory}: {key}: {error}"
    ) from error


def _check_small(num_bytes: int) -> None:
  if num_bytes > _MAX_CHUNK_BYTES:
    raise errors.CorruptCheckpointError(
      f"{num_bytes} bytes, more than the {_MAX_CHUNK_BYTES} of a small chunk"
    )


def _open_ocdbt(
  directory: pathlib.Path, databases: tuple[pathlib.Path, ...]
) -> Store:
  listings = tuple(map(_list, databases))
  notes = []
  if databases != (directory,):
    notes.append(
      f"{directory}: no merged {MANIFEST_NAME}; read from the databases of"
      f" {len(databases)} hosts: {_some(path.name for path in databases)}"
    )
  parse = _Parser()
  arrays: dict[str, StoredArray] = {}
  for i, (listing, path) in enumerate(zip(listings, databases, strict=True)):
    for array in _arrays_of(listing, i, path, parse):
      known = arrays.get(array.name)
      arrays[array.name] = (
        array if known is None else _merge(known, array, path)
      )
    notes.extend(_note_stray_keys(listing, path))
  return Store(directory, "ocdbt", listings, arrays, tuple(notes))


def _name(entry: "ArrayEntry", path: pathlib.Path) -> str:
  """Returns the name of an array; the error for one that isn't UTF-8."""
  try:
    return entry.name
  except errors.CorruptCheckpointError as error:
    raise errors.CorruptCheckpointError(f"{path}: {error}") from error


def _arrays_of(
  listing: "Listing", index: int, path: pathlib.Path, parse: _Parser
) -> Iterator[StoredArray]:
  for entry in listing.arrays():
    name = _name(entry, path)
    suffix = entry.metadata_key.rpartition("/")[2]
    yield StoredArray(
      name=name,
      spec=parse(f"{path}: {name}/{suffix}", entry.metadata),
      listing=index,
      other_listings=(),
      num_chunks=entry.num_chunks,
      num_stored_bytes=entry.num_stored_bytes,
    )


def _merge(
  known: StoredArray, array: StoredArray, path: pathlib.Path
) -> StoredArray:
  """Returns the union of what two databases hold of one array."""
  if known.spec != array.spec:
    raise errors.CorruptCheckpointError(
      f"{path}: array {array.name!r} is {_describe(array.spec)}, but another"
      f" host's database says {_describe(known.spec)}; they stem from"
      " different saves"
    )
  if not array.num_chunks:
    return known
  return dataclasses.replace(
    known,
    other_listings=(*known.other_listings, array.listing),
    num_chunks=known.num_chunks + array.num_chunks,
    num_stored_bytes=known.num_stored_bytes + array.num_stored_bytes,
  )


def _describe(spec: ArraySpec) -> str:
  return (
    f"{list(spec.shape)} {spec.dtype} in chunks of {list(spec.chunk_shape)}"
  )


def _note_stray_keys(listing: "Listing", path: pathlib.Path) -> Iterator[str]:
  keys = listing.stray_keys(_MAX_SHOWN + 1)
  if keys:
    yield (
      f"{path}: keys that belong to no array, left out: {_some(map(str, keys))}"
    )


def _open_zarr(directory: pathlib.Path) -> Store:
  listing = _list(directory, _native.list_directory)
  arrays = _arrays_of(listing, 0, directory, _Parser())
  notes = tuple(
    f"{path}: an OCDBT database of its own (a form of old Orbax versions),"
    " left out"
    for path in sorted(directory.iterdir())
    if (path / MANIFEST_NAME).is_file()
  )
  return Store(
    directory, "zarr", (listing,), {each.name: each for each in arrays}, notes
  )


def _some(names: Iterable[str]) -> str:
  """Returns the first of `names`, and whether there are more."""
  listed = list(names)
  more = ", ..." if len(listed) > _MAX_SHOWN else ""
  return ", ".join(listed[:_MAX_SHOWN]) + more
