"""Reads a target, whatever is wrong with it.

What an ordinary reader refuses is here a difference, and the rest is read.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from relayout.comparison.oracle import Oracle, open_oracle
from relayout.comparison.oracle_store import open_oracle_store
from relayout.comparison.record import read_record
from relayout.comparison.side import EMPTY, Side, read_state
from relayout.comparison.steps import ASIDE, Step
from relayout.errors import LayoutError, RelayoutError
from relayout.layouts.state import State, StoredLeaf
from relayout.metadata import array_metadatas, safe_json, tree_metadata
from relayout.metadata.item import Item, ItemLeaf
from relayout.metadata.item_store import Store
from relayout.metadata.tree_metadata import TreeLeaf, TreeMetadata
from relayout.tree.key_path import TypedPath, dotted
from relayout.verify.account import Difference, Kind

_MOST_MISFITS = 100
"""Leaves that are named one by one; then the item is one difference."""


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
  """A target, and what does not follow the rules of its layout."""

  side: Side
  problems: tuple[Difference, ...]


def read_target(step: Step) -> Target:
  """Reads a step or an item; leaves that do not fit its layout are problems.

  Raises:
    CorruptCheckpointError: If its store or a side file can't be read at all.
  """
  oracles = {path: open_oracle(path) for path in step.items.values()}
  items = {
    name: _open_leniently(name, oracles[path])
    for name, path in step.items.items()
  }
  aside = items.pop(ASIDE, None)
  state, problems = _read_state(step, items)
  side = Side(
    step=step,
    items=tuple(items.values()),
    oracles=oracles,
    state=state,
    aside=aside,
    record=read_record(step.directory),
  )
  return Target(side, tuple(problems))


def _open_leniently(name: str, oracle: Oracle) -> Item:
  """Opens an item whose `_METADATA` and store may contradict each other."""
  store = open_oracle_store(oracle)
  tree = _read_tree(oracle.directory)
  return Item(
    directory=oracle.directory,
    name=name,
    store=store.kind,
    listings=(),
    leaves=tuple(_leaves(store, tree)),
    use_zarr3=bool(tree and tree.use_zarr3),
    missing_side_files=(),
    notes=(),
    tree=tree,
    _values=store,
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
      num_chunks=array.num_chunks,
    )
  for name, leaf in named.items():
    if name not in store.arrays and leaf.is_empty:
      yield _empty_leaf(name, leaf)


def _empty_leaf(name: str, leaf: TreeLeaf) -> ItemLeaf:
  return ItemLeaf(leaf.path, name, None, leaf.value_type)


def _read_state(
  step: Step, items: Mapping[str, Item]
) -> tuple[State, list[Difference]]:
  """Reads the state without the leaves that do not fit, and says which."""
  rest = dict(items)
  problems: list[Difference] = []
  while True:
    try:
      return read_state(step.layout, rest), problems
    except RelayoutError as error:
      found = _culprit(rest, error) if len(problems) < _MOST_MISFITS else None
      if found is None:
        # Of several items, the later ones depend on the first.
        name = next(reversed(rest))
        problems.append(_whole_item(rest.pop(name), error))
      else:
        item = rest[found.item.name]
        leaves = tuple(x for x in item.leaves if x is not found.leaf)
        rest[item.name] = dataclasses.replace(item, leaves=leaves)
        problems.append(_problem(found, error))
    if not rest:
      return EMPTY, problems


def _culprit(
  items: Mapping[str, Item], error: RelayoutError
) -> StoredLeaf | None:
  """Returns the leaf that a message begins with, or None."""
  text = str(error)
  for item in items.values():
    for leaf in item.leaves:
      stored = StoredLeaf(item, leaf)
      if text.startswith(
        (f"{stored.label}: ", f"{item.directory}: {leaf.name}: ")
      ):
        return stored
  return None


def _problem(stored: StoredLeaf, error: RelayoutError) -> Difference:
  text = str(error).removeprefix(f"{stored.label}: ")
  return Difference(_kind(error), stored.label, text)


def _whole_item(item: Item, error: RelayoutError) -> Difference:
  labels = tuple(StoredLeaf(item, leaf).label for leaf in item.leaves)
  return Difference(_kind(error), item.name, str(error), labels)


def _kind(error: RelayoutError) -> Kind:
  is_layout = isinstance(error, LayoutError)
  return Kind.LAYOUT if is_layout else Kind.UNREADABLE
