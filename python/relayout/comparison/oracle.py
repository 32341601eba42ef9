"""Reads items with TensorStore: what it reads is what trainers will read.

Nothing of relayout's own reader of databases is involved.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.errors import CorruptCheckpointError

if TYPE_CHECKING:
  import tensorstore as ts

READ_ERRORS = (ValueError, OSError, RuntimeError, NotImplementedError)
"""What TensorStore raises for damaged or unknown input."""

_METADATA_KEYS = {".zarray": 2, "zarr.json": 3}
_KEY_OF_FORMAT = {number: key for key, number in _METADATA_KEYS.items()}
_DRIVERS = {2: "zarr", 3: "zarr3"}
_MANIFEST = "manifest.ocdbt"
_ORBAX_FILES = ("_", "array_metadatas/", "commit_success.txt", "d/", _MANIFEST)


@dataclasses.dataclass(frozen=True, slots=True)
class StoredArray:
  """An array as the keys of a store tell of it.

  Attributes:
    databases: Directories of the databases that hold it: one, or several if
      the hosts that wrote parts of it never merged theirs.
    formats: Versions of zarr that it has metadata for; one, if all is well.
    num_chunks: Number of chunks that are stored.
  """

  databases: tuple[Path, ...]
  formats: tuple[int, ...]
  num_chunks: int


@dataclasses.dataclass(frozen=True, slots=True)
class Oracle:
  """The arrays of one item.

  Attributes:
    directory: The item.
    is_ocdbt: Whether they are in OCDBT databases.
    arrays: What is stored, by name.
    stray_keys: Keys that belong to no array.
    stores: The databases, opened, by their directory.
  """

  directory: Path
  is_ocdbt: bool
  arrays: Mapping[str, StoredArray]
  stray_keys: tuple[str, ...]
  stores: Mapping[Path, "ts.KvStore"] = dataclasses.field(repr=False)

  def open(self, name: str) -> "ts.TensorStore":
    """Opens an array for reading.

    Raises:
      CorruptCheckpointError: If it is not stored, its metadata can't be read,
        or several databases hold the same part of it.
    """
    import tensorstore as ts

    stored = self.arrays.get(name)
    if stored is None:
      raise CorruptCheckpointError(
        f"{self.directory}: TensorStore finds no array {name}"
      )
    spec = {
      "driver": _DRIVERS[stored.formats[-1]],
      "kvstore": self._kvstore(name, stored),
    }
    try:
      return ts.open(spec, read=True, open=True, context=_context()).result()
    except READ_ERRORS as error:
      raise CorruptCheckpointError(
        f"{self.directory}: array {name}: {error}"
      ) from error

  def _kvstore(self, name: str, stored: StoredArray) -> dict[str, Any]:
    """Returns the specification of the store with the array's own keys.

    Parts in several databases are laid over each other, chunk by chunk.
    """
    first, *others = stored.databases
    base = _kvstore(first, f"{name}/", self.is_ocdbt)
    if not others:
      return base
    known = set(self._chunk_keys(name, first))
    layers: list[dict[str, Any]] = [{"base": base}]
    for database in others:
      for key in self._chunk_keys(name, database):
        if key in known:
          raise CorruptCheckpointError(
            f"{self.directory}: two databases, of which one is "
            f"{database.name}, hold chunk {key} of array {name}"
          )
        known.add(key)
        part = _kvstore(database, f"{name}/{key}", self.is_ocdbt)
        layers.append({"base": part, "exact": key})
    return {"driver": "kvstack", "layers": layers}

  def _chunk_keys(self, name: str, database: Path) -> Iterator[str]:
    """Yields the keys of an array's chunks in one database."""
    for key in _list_keys(
      self.stores[database], database, is_ocdbt=self.is_ocdbt, below=f"{name}/"
    ):
      chunk = key[len(name) + 1 :]
      if chunk not in _METADATA_KEYS and _is_own(key, name, self.arrays):
        yield chunk

  def read_keys(self, keys: Mapping[str, str]) -> dict[str, bytes | None]:
    """Returns what is stored under one key of each of some arrays.

    Args:
      keys: Store key by array name.

    Returns:
      By array name; None where nothing is stored.

    Raises:
      CorruptCheckpointError: If a key can't be read.
    """
    reads = {
      name: [
        self.stores[part].read(key) for part in self.arrays[name].databases
      ]
      for name, key in keys.items()
    }
    result: dict[str, bytes | None] = {}
    for name, parts in reads.items():
      try:
        found = [read.result() for read in parts]
      except READ_ERRORS as error:
        raise CorruptCheckpointError(
          f"{self.directory}: {keys[name]}: {error}"
        ) from error
      values = (bytes(x.value) for x in found if x.state == "value")
      result[name] = next(values, None)
    return result

  def metadata_keys(self) -> dict[str, str]:
    """Returns the store key of each array's metadata, by name."""
    return {
      name: f"{name}/{_KEY_OF_FORMAT[array.formats[-1]]}"
      for name, array in self.arrays.items()
    }


def open_oracle(item: Path) -> Oracle:
  """Lists the arrays of the item in directory `item`.

  Raises:
    CorruptCheckpointError: If its store can't be listed.
  """
  databases = _databases(item)
  arrays: dict[str, StoredArray] = {}
  stray: list[str] = []
  stores = {
    database: _open_store(database, is_ocdbt=bool(databases))
    for database in databases or [item]
  }
  for database, store in stores.items():
    keys = _list_keys(store, database, is_ocdbt=bool(databases))
    found, loose = _group(keys, database)
    for name, array in found.items():
      arrays[name] = _merge(arrays.get(name), array)
    stray += loose
  return Oracle(item, bool(databases), arrays, tuple(stray), stores)


def chunk_shape(array: "ts.TensorStore") -> tuple[int, ...]:
  """Returns the shape of the smallest part that can be read by itself."""
  shape = array.chunk_layout.read_chunk.shape or ()
  return tuple(int(length or 1) for length in shape)


@functools.cache
def _context() -> "ts.Context":
  """Returns the caches that all reads share; nodes of databases, mostly."""
  import tensorstore as ts

  return ts.Context({"cache_pool": {"total_bytes_limit": 1 << 25}})


def _databases(item: Path) -> list[Path]:
  """Returns the item's database, or those of each host if never merged."""
  if (item / _MANIFEST).exists():
    return [item]
  return sorted(
    path.parent for path in item.glob(f"ocdbt.process_*/{_MANIFEST}")
  )


def _merge(known: StoredArray | None, array: StoredArray) -> StoredArray:
  """Returns what two databases together hold of one array."""
  if known is None or not known.num_chunks:
    return array
  if not array.num_chunks:
    return known
  return StoredArray(
    databases=(*known.databases, *array.databases),
    formats=tuple(sorted({*known.formats, *array.formats})),
    num_chunks=known.num_chunks + array.num_chunks,
  )


def _kvstore(directory: Path, key: str, is_ocdbt: bool) -> dict[str, Any]:
  """Returns the specification of what is below `key` in a store."""
  files = {"driver": "file", "path": f"{directory.resolve()}/"}
  if is_ocdbt:
    return {"driver": "ocdbt", "base": files, "path": key}
  return files | {"path": files["path"] + key}


def _open_store(directory: Path, *, is_ocdbt: bool) -> "ts.KvStore":
  import tensorstore as ts

  spec = _kvstore(directory, "", is_ocdbt)
  try:
    return ts.KvStore.open(spec, context=_context()).result()
  except READ_ERRORS as error:
    raise CorruptCheckpointError(f"{directory}: {error}") from error


def _list_keys(
  store: "ts.KvStore", directory: Path, *, is_ocdbt: bool, below: str = ""
) -> list[str]:
  import tensorstore as ts

  within = ts.KvStore.KeyRange(below, f"{below[:-1]}0" if below else "")
  try:
    keys = [key.decode() for key in store.list(within).result()]
  except READ_ERRORS as error:
    raise CorruptCheckpointError(f"{directory}: {error}") from error
  if is_ocdbt:
    return keys
  return [key for key in keys if not key.startswith(_ORBAX_FILES)]


def _array_of(key: str, names: Container[str]) -> str | None:
  """Returns the longest of `names` that `key` lies below, or None."""
  prefix = key
  while "/" in prefix:
    prefix = prefix.rpartition("/")[0]
    if prefix in names:
      return prefix
  return None


def _is_own(key: str, name: str, arrays: Mapping[str, StoredArray]) -> bool:
  """Whether a key below an array is its own, and not that of another below."""
  return _array_of(key, arrays) == name


def _group(
  keys: list[str], database: Path
) -> tuple[dict[str, StoredArray], list[str]]:
  """Returns the arrays that `keys` form, and the keys that belong to none."""
  formats: dict[str, list[int]] = {}
  for key in keys:
    name, _, last = key.rpartition("/")
    if name and last in _METADATA_KEYS:
      formats.setdefault(name, []).append(_METADATA_KEYS[last])
  num_chunks: Counter[str] = Counter()
  stray = []
  for key in keys:
    owner = _array_of(key, formats)
    if owner is None:
      stray.append(key)
    elif key[len(owner) + 1 :] not in _METADATA_KEYS:
      num_chunks[owner] += 1
  arrays = {
    name: StoredArray((database,), tuple(sorted(found)), num_chunks[name])
    for name, found in formats.items()
  }
  return arrays, stray
