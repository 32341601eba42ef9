"""One item of a checkpoint: its leaves, joined from store and side files."""

import dataclasses
import math
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Protocol

from relayout import errors
from relayout.metadata import (
  array_metadatas,
  item_store,
  safe_json,
  sharding,
  tree_metadata,
)
from relayout.metadata.item_store import Store, StoredArray
from relayout.metadata.tree_metadata import TreeLeaf, TreeMetadata
from relayout.metadata.zarr_array import METADATA_KEYS
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import TypedPath, dotted

if TYPE_CHECKING:
  from relayout._native import Listing

_MAX_SHOWN = 3
_GUESSED_VALUE_TYPE = "jax.Array"


@dataclasses.dataclass(frozen=True, slots=True)
class ItemLeaf:
  """A leaf of an item's tree.

  Attributes:
    path: Where it stands.
    name: Its name in the store.
    spec: Its array; None for a leaf without one: None, an empty container,
      or text.
    value_type: What was saved, as `_METADATA` says: `jax.Array`, `np.ndarray`,
      `scalar`, `string`, `None`, `Dict`, `List`, `Tuple`.
    write_shape: Shape of one device's part, or None if it isn't recorded.
    random_key_impl: Generator of a typed PRNG key: `threefry2x32`, `rbg`,
      `unsafe_rbg`; None for other leaves.
    sharding: Text of its entry in `_sharding`, or None.
    listing: Index into `Item.listings` of the database that holds the array;
      `item_store.IN_NO_LISTING` without one.
    other_listings: Further databases that hold chunks of it.
    num_chunks: Number of stored chunks.
    num_stored_bytes: Size of the stored chunks.
  """

  path: TypedPath
  name: str
  spec: ArraySpec | None
  value_type: str
  write_shape: tuple[int, ...] | None = None
  random_key_impl: str | None = None
  sharding: str | None = None
  listing: int = item_store.IN_NO_LISTING
  other_listings: tuple[int, ...] = ()
  num_chunks: int = 0
  num_stored_bytes: int = 0


class SmallValues(Protocol):
  """What reads the values of an item's small arrays."""

  def read_small(self, name: str) -> list[int | float]:
    """Returns the elements of an array in C order."""
    ...


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
  """An item, opened.

  Attributes:
    directory: Where it is.
    name: Its name within the step, such as `items` or `model_params`.
    store: `ocdbt`, or `zarr` for a directory an array.
    listings: The OCDBT databases: one, or, without a merged manifest, one a
      host; of a `zarr` store, the directory as if it were a database.
    leaves: In the order of `_METADATA`.
    use_zarr3: Whether the arrays are zarr v3; if both versions occur, what
      `_METADATA` says.
    missing_side_files: Which of `_METADATA`, `_sharding` and
      `array_metadatas` are absent.
    notes: What a user should know.
    tree: What `_METADATA` says, or None.
  """

  directory: pathlib.Path
  name: str
  store: Literal["ocdbt", "zarr"]
  listings: tuple["Listing", ...]
  leaves: tuple[ItemLeaf, ...]
  use_zarr3: bool
  missing_side_files: tuple[str, ...]
  notes: tuple[str, ...]
  tree: TreeMetadata | None
  _values: SmallValues = dataclasses.field(repr=False)

  def read_small(self, leaf: ItemLeaf) -> list[int | float]:
    """Returns the elements of a small array in C order.

    Raises:
      CorruptCheckpointError: If a chunk is damaged.
      LayoutError: If the leaf has no array.
      UnsupportedError: If the array is large, or its data type or codec is not
        decoded one by one.
    """
    if leaf.spec is None:
      raise errors.LayoutError(
        f"{self.directory}: {leaf.name} is {leaf.value_type}, not an array"
      )
    return self._values.read_small(leaf.name)


def open_item(directory: pathlib.Path) -> Item:
  """Returns the item in `directory`; reads metadata only.

  Where side files are absent, the arrays' own metadata tells what it can, and
  `notes` says so.

  Raises:
    CorruptCheckpointError: If a file is damaged, or an array that `_METADATA`
      names is not in the store, wholly or in part.
    NotACheckpointError: If the directory holds no arrays.
    UnsupportedError: If an array is of a kind that relayout doesn't know.
  """
  store = _open_store(directory)
  side_files = _read_side_files(directory)
  notes = [*store.notes, *_note_missing(directory, side_files)]
  tree = side_files.tree
  if tree is None or tree.leaves is None:
    leaves = tuple(_leaves_of_store(store, side_files))
  else:
    leaves = tuple(_leaves_of_tree(store, side_files, tree.leaves))
    notes.extend(_note_tree(store, tree.leaves, leaves))
  use_zarr3, zarr_notes = _zarr_version(store, tree)
  return Item(
    directory=directory,
    name=directory.name or directory.resolve().name,
    store=store.kind,
    listings=store.listings,
    leaves=leaves,
    use_zarr3=use_zarr3,
    missing_side_files=side_files.missing,
    notes=(*notes, *zarr_notes),
    tree=tree,
    _values=store,
  )


@dataclasses.dataclass(frozen=True, slots=True)
class _SideFiles:
  """What stands beside the store."""

  tree: TreeMetadata | None
  shardings: dict[str, str] | None
  arrays: dict[str, array_metadatas.ArrayMetadata] | None

  @property
  def missing(self) -> tuple[str, ...]:
    found = {
      tree_metadata.FILE_NAME: self.tree,
      sharding.FILE_NAME: self.shardings,
      array_metadatas.DIRECTORY_NAME: self.arrays,
    }
    return tuple(name for name, content in found.items() if content is None)

  def random_key_impl(self, name: str) -> str | None:
    entry = (self.arrays or {}).get(name)
    return None if entry is None else entry.random_key_impl

  def write_shape(self, name: str) -> tuple[int, ...] | None:
    entry = (self.arrays or {}).get(name)
    return None if entry is None else entry.write_shape


def _open_store(directory: pathlib.Path) -> Store:
  try:
    return item_store.open_store(directory)
  except OSError as error:
    raise errors.NotACheckpointError(
      f"{directory}: can't be read ({error.strerror})"
    ) from error


def _read_side_files(directory: pathlib.Path) -> _SideFiles:
  path = directory / tree_metadata.FILE_NAME
  try:
    tree = tree_metadata.parse_tree_metadata(
      safe_json.read_bytes(path), str(path)
    )
  except FileNotFoundError:
    tree = None
  return _SideFiles(
    tree=tree,
    shardings=sharding.read_shardings(directory),
    arrays=array_metadatas.read_array_metadatas(directory),
  )


def _note_missing(
  directory: pathlib.Path, side_files: _SideFiles
) -> Iterator[str]:
  if side_files.missing:
    yield f"{directory}: without {', '.join(side_files.missing)}"
  if side_files.tree is None or side_files.tree.leaves is None:
    yield (
      f"{directory}: no tree in {tree_metadata.FILE_NAME}; leaves are named by"
      " the arrays, every container is taken for a dict, and leaves that are"
      " None are unknown"
    )


def _leaves_of_store(
  store: Store, side_files: _SideFiles
) -> Iterator[ItemLeaf]:
  for name, array in sorted(store.arrays.items()):
    path = TypedPath.of_dicts(tuple(name.split(".")))
    yield _join(path, _GUESSED_VALUE_TYPE, None, array, side_files)


def _leaves_of_tree(
  store: Store, side_files: _SideFiles, tree: tuple[TreeLeaf, ...]
) -> Iterator[ItemLeaf]:
  complete = side_files.tree and (
    side_files.tree.store_array_data_equal_to_fill_value
  )
  replaced = _replaced_placeholders(tree)
  absent = []
  for leaf in tree:
    name = dotted(leaf.path.names)
    array = store.arrays.get(name)
    if name in replaced:
      continue
    if _has_no_array(leaf, array):
      yield ItemLeaf(leaf.path, name, None, leaf.value_type)
    elif array is None:
      absent.append(name)
    else:
      if complete:
        _check_complete(store, array)
      yield _join(leaf.path, leaf.value_type, leaf, array, side_files)
  if absent:
    raise errors.CorruptCheckpointError(
      f"{store.directory}: {tree_metadata.FILE_NAME} names {len(absent)} arrays"
      f" that are not in the store: {_some(absent)}; the checkpoint is"
      " incomplete (was a file left out when it was copied?)"
      f"{_hint_other_driver(store, absent[0])}"
    )


def _hint_other_driver(store: Store, name: str) -> str:
  """Says so if an array lies beside the store in another form."""
  path = store.directory / name
  if path.parent != store.directory:
    return ""
  for key in (*METADATA_KEYS, item_store.MANIFEST_NAME):
    if (path / key).is_file():
      return (
        f"; {path / key} may hold it: an item that mixes forms of storage,"
        " which relayout doesn't read"
      )
  return ""


def _has_no_array(leaf: TreeLeaf, array: StoredArray | None) -> bool:
  """Whether a leaf is not expected to be an array of the store."""
  if leaf.is_empty or leaf.value_type == "string":
    return True
  return (
    array is None and leaf.write_shape is not None and 0 in leaf.write_shape
  )


def _replaced_placeholders(tree: tuple[TreeLeaf, ...]) -> set[str]:
  """Returns the names of empty leaves that a later partial save filled."""
  empty = {leaf.path.names for leaf in tree if leaf.is_empty}
  if not empty:
    return set()
  prefixes = {
    leaf.path.names[:length]
    for leaf in tree
    for length in range(len(leaf.path.names))
  }
  return {dotted(names) for names in empty & prefixes}


def _check_complete(store: Store, array: StoredArray) -> None:
  """Refuses an array of which chunks are lost, not merely never stored."""
  expected = math.prod(array.spec.grid)
  if array.num_chunks < expected:
    raise errors.CorruptCheckpointError(
      f"{store.directory}: array {array.name!r} has {array.num_chunks} of its"
      f" {expected} chunks, though {tree_metadata.FILE_NAME} says that all are"
      " stored; the checkpoint is incomplete (is a host's part missing?)"
    )


def _join(
  path: TypedPath,
  value_type: str,
  leaf: TreeLeaf | None,
  array: StoredArray,
  side_files: _SideFiles,
) -> ItemLeaf:
  write_shape = None if leaf is None else leaf.write_shape
  if write_shape is None:
    write_shape = side_files.write_shape(array.name)
  return ItemLeaf(
    path=path,
    name=array.name,
    spec=array.spec,
    value_type=value_type,
    write_shape=write_shape,
    random_key_impl=side_files.random_key_impl(array.name),
    sharding=(side_files.shardings or {}).get(array.name),
    listing=array.listing,
    other_listings=array.other_listings,
    num_chunks=array.num_chunks,
    num_stored_bytes=array.num_stored_bytes,
  )


def _note_tree(
  store: Store, tree: tuple[TreeLeaf, ...], leaves: tuple[ItemLeaf, ...]
) -> Iterator[str]:
  """Yields what of the store or the tree the leaves leave out."""
  extra = store.arrays.keys() - {
    leaf.name for leaf in leaves if leaf.spec is not None
  }
  if extra:
    yield (
      f"{store.directory}: arrays of the store that"
      f" {tree_metadata.FILE_NAME} doesn't name, left out:"
      f" {_some(sorted(extra))}"
    )
  texts = [leaf.name for leaf in leaves if leaf.value_type == "string"]
  if texts:
    yield f"{store.directory}: leaves that are text: {_some(texts)}"
  if len(leaves) < len(tree):
    yield (
      f"{store.directory}: {tree_metadata.FILE_NAME} lists empty containers"
      " that hold leaves after all; left out"
    )


def _zarr_version(
  store: Store, tree: TreeMetadata | None
) -> tuple[bool, list[str]]:
  """Returns whether the arrays are zarr v3, and notes on contradictions."""
  versions = {array.spec.zarr_format for array in store.arrays.values()}
  said = None if tree is None else tree.use_zarr3
  notes = []
  if len(versions) > 1:
    notes.append(
      f"{store.directory}: holds arrays of zarr v2 and of v3; Orbax reads only"
      " those of one version"
    )
    actual = bool(said)
  else:
    actual = versions == {3} if versions else bool(said)
    if said is not None and said is not actual:
      notes.append(
        f"{store.directory}: {tree_metadata.FILE_NAME} says use_zarr3"
        f" {str(said).lower()}, but the arrays are zarr v{3 if actual else 2};"
        " Orbax can't read it"
      )
  return actual, notes


def _some(names: list[str]) -> str:
  """Returns the first of `names`, and whether there are more."""
  more = ", ..." if len(names) > _MAX_SHOWN else ""
  return ", ".join(names[:_MAX_SHOWN]) + more
