"""Both sides of a comparison, read but for the values of their arrays."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from relayout.errors import LayoutError, RelayoutError
from relayout.layouts import maxtext, stacking, tunix
from relayout.layouts.state import ScanMode, State, StoredLeaf
from relayout.metadata import array_metadatas, safe_json, tree_metadata
from relayout.metadata.item import Item, ItemLeaf, open_item
from relayout.metadata.item_store import Store
from relayout.metadata.tree_metadata import TreeLeaf, TreeMetadata
from relayout.tree.key_path import KeyPath, TypedPath, dotted
from relayout.verify.account import Difference, Kind
from relayout.verify.candidates import SourceStep, TargetStep
from relayout.verify.oracle import Oracle, open_oracle
from relayout.verify.oracle_store import open_oracle_store

_EMPTY = State(leaves={}, optimizer=None, step=None)
_ADAM = ("opt_state", "0")


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
  """One side of a comparison.

  Attributes:
    items: The items.
    oracles: For each item, by its directory, what TensorStore finds in it.
    state: What the leaves are, by the rules of the side's layout.
    problems: What does not follow these rules.
  """

  items: tuple[Item, ...]
  oracles: Mapping[Path, Oracle]
  state: State
  problems: tuple[Difference, ...] = ()

  @property
  def mode(self) -> ScanMode:
    """Whether the layers are scanned."""
    return stacking.scan_mode(self.state.weight_paths)

  @property
  def optimizer(self) -> Oracle | None:
    """The store of the source's optimizer state, if it has one."""
    return self.oracles[self.items[1].directory] if self.items[1:] else None

  def oracle(self, leaf: StoredLeaf) -> Oracle:
    """Returns what TensorStore finds in the item of `leaf`."""
    return self.oracles[leaf.item.directory]

  def stored(self) -> Iterator[StoredLeaf]:
    """Yields the leaves of all items."""
    for item in self.items:
      for leaf in item.leaves:
        yield StoredLeaf(item, leaf)

  def labels(self) -> Iterator[str]:
    """Yields the labels of all leaves, and of arrays that no tree names."""
    for item in self.items:
      names = {leaf.name for leaf in item.leaves}
      for name in names | self.oracles[item.directory].arrays.keys():
        yield f"{item.name}/{name}"


def read_source(step: SourceStep, *, weights_only: bool) -> Side:
  """Reads a Tunix step.

  Args:
    step: Where it is.
    weights_only: Whether the optimizer's leaves have no part in the state.

  Raises:
    RelayoutError: If it can't be read, or does not follow Tunix's layout.
  """
  model = open_item(step.model)
  optimizer = None if step.optimizer is None else open_item(step.optimizer)
  items = (model,) if optimizer is None else (model, optimizer)
  return Side(
    items=items,
    oracles={item.directory: open_oracle(item.directory) for item in items},
    state=tunix.read_state(model, None if weights_only else optimizer),
  )


def read_target(step: TargetStep) -> Side:
  """Reads a MaxText item; leaves that do not follow its layout are problems.

  Raises:
    CorruptCheckpointError: If its store or a side file can't be read at all.
  """
  oracle = open_oracle(step.item)
  item = _open_leniently(step.item, oracle)
  fitting, problems = _split_fitting(item)
  state = _EMPTY
  if fitting:
    state = maxtext.read_state(dataclasses.replace(item, leaves=fitting))
  return Side(
    items=(item,),
    oracles={item.directory: oracle},
    state=_with_whole_item(state, item),
    problems=problems,
  )


def _with_whole_item(state: State, item: Item) -> State:
  """Returns `state` with leaves that refer to `item`, not to a part of it."""
  leaves = {
    key: StoredLeaf(item, stored.leaf) for key, stored in state.leaves.items()
  }
  return dataclasses.replace(state, leaves=leaves)


def _open_leniently(directory: Path, oracle: Oracle) -> Item:
  """Opens an item whose `_METADATA` and store may contradict each other.

  `open_item` refuses such an item; here, each contradiction is a difference.
  """
  store = open_oracle_store(oracle)
  tree = _read_tree(directory)
  return Item(
    directory=directory,
    name=maxtext.ITEM,
    store=store.kind,
    listings=(),
    leaves=tuple(_leaves(store, tree)),
    use_zarr3=bool(tree and tree.use_zarr3),
    missing_side_files=(),
    notes=(),
    tree=tree,
    _store=store,
  )


def _read_tree(directory: Path) -> TreeMetadata | None:
  path = directory / tree_metadata.FILE_NAME
  if not path.is_file():
    return None
  return tree_metadata.parse_tree_metadata(
    safe_json.read_bytes(path), str(path)
  )


def _leaves(store: Store, tree: TreeMetadata | None) -> Iterator[ItemLeaf]:
  """Yields every array of the store, and the tree's leaves without an array."""
  named = {
    dotted(leaf.path.names): leaf for leaf in (tree and tree.leaves) or ()
  }
  key_impls = array_metadatas.read_array_metadatas(store.directory) or {}
  for name, array in sorted(store.arrays.items()):
    known = named.get(name)
    entry = key_impls.get(name)
    yield ItemLeaf(
      path=known.path if known else TypedPath.of_dicts(tuple(name.split("."))),
      name=name,
      spec=array.spec,
      value_type=known.value_type if known else "jax.Array",
      random_key_impl=entry.random_key_impl if entry else None,
    )
  for name, leaf in named.items():
    if name not in store.arrays and leaf.is_empty:
      yield _empty_leaf(name, leaf)


def _empty_leaf(name: str, leaf: TreeLeaf) -> ItemLeaf:
  return ItemLeaf(leaf.path, name, None, leaf.value_type)


def _split_fitting(
  item: Item,
) -> tuple[tuple[ItemLeaf, ...], tuple[Difference, ...]]:
  """Splits the leaves into those that fit MaxText's layout, and problems."""
  if _misfit(item, item.leaves) is None:
    return item.leaves, ()
  fitting: list[ItemLeaf] = []
  problems = []
  anchor = _anchor(item)
  for leaf in item.leaves:
    error = _misfit(item, (*anchor, leaf))
    if error is None:
      fitting.append(leaf)
    else:
      problems.append(_problem(StoredLeaf(item, leaf).label, error))
  return tuple(fitting), tuple(problems)


def _anchor(item: Item) -> tuple[ItemLeaf, ...]:
  """Returns a leaf by which MaxText's rules recognise AdamW, or nothing."""
  for leaf in item.leaves:
    path = leaf.path.names
    if path[:2] == _ADAM and _is_adam_leaf(path[2:]):
      return (leaf,)
  return ()


def _is_adam_leaf(path: KeyPath) -> bool:
  return path == ("count",) or path[:2] in (("mu", "params"), ("nu", "params"))


def _misfit(item: Item, leaves: tuple[ItemLeaf, ...]) -> RelayoutError | None:
  """Returns why `leaves` do not fit MaxText's layout, or None if they do."""
  try:
    maxtext.read_state(dataclasses.replace(item, leaves=leaves))
  except RelayoutError as error:
    return error
  return None


def _problem(label: str, error: RelayoutError) -> Difference:
  is_layout = isinstance(error, LayoutError)
  kind = Kind.LAYOUT if is_layout else Kind.UNREADABLE
  return Difference(kind, label, str(error).removeprefix(f"{label}: "))
