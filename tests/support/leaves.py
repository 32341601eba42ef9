"""Stored leaves as data: what plans are made of, without a file."""

from pathlib import Path

from relayout.layouts.state import Role, StateKey, StoredLeaf
from relayout.metadata.item import Item, ItemLeaf
from relayout.metadata.item_store import Store
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import TypedPath


def stored_leaf(
  name: str,
  spec: ArraySpec,
  *,
  item: str = "items",
  write_shape: tuple[int, ...] | None = None,
  random_key_impl: str | None = None,
) -> StoredLeaf:
  """Returns a leaf of that name, of an item that lies nowhere."""
  directory = Path("nowhere", item)
  leaf = ItemLeaf(
    path=TypedPath.of_dicts(tuple(name.split("."))),
    name=name,
    spec=spec,
    value_type="jax.Array",
    write_shape=write_shape,
    random_key_impl=random_key_impl,
  )
  return StoredLeaf(
    Item(
      directory=directory,
      name=item,
      store="ocdbt",
      listings=(),
      leaves=(leaf,),
      use_zarr3=spec.zarr_format == 3,
      missing_side_files=(),
      notes=(),
      tree=None,
      _values=Store(directory, "ocdbt", (), {}, ()),
    ),
    leaf,
  )


def weight(path: str) -> StateKey:
  """Returns the key of the weight at a dotted model path."""
  return StateKey(Role.WEIGHT, tuple(path.split(".")))
