"""A layout as data: how a trainer names, stores and numbers a state.

Reading turns stored leaves into a `State`; placing turns the keys of a state
into names.  A conversion reads by the rules of one layout and places by those
of another, so a new layout is one more `Layout`, whatever it is paired with.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from relayout.layouts.state import (
  LayoutName,
  OptimizerKind,
  State,
  StateKey,
  StoredLeaf,
)
from relayout.layouts.wrappers import NO_WRAPPERS, Wrappers
from relayout.metadata.item import Item
from relayout.tree.key_path import TypedPath


@dataclasses.dataclass(frozen=True, slots=True)
class Naming:
  """What the names in a layout depend on.

  Attributes:
    optimizer: Which optimizer the state has; None without moments.
    adapter: Level around the weights, or "".
    wrappers: What the trainer wraps around its optimizer.
    has_schedule: Whether the optimizer keeps the position of a schedule of
      the learning rate.
  """

  optimizer: OptimizerKind | None
  adapter: str = ""
  wrappers: Wrappers = NO_WRAPPERS
  has_schedule: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
  """Where a layout keeps a leaf.

  Attributes:
    item: Name of the item.
    path: Key path in it.
  """

  item: str
  path: TypedPath


@dataclasses.dataclass(frozen=True, slots=True)
class Extra:
  """A leaf that a layout has and that no stored leaf becomes.

  Attributes:
    place: Where it is.
    rule: How its value was found, for reports.
    dtype: Of the scalar; "" for an empty leaf, and where `zeros_like` is set.
    value: The scalar, or None.
    zeros_like: Key of the leaf whose shape and type an array of zeros has.
    sources: The stored leaves that the value was read from.
  """

  place: Place
  rule: str
  dtype: str = ""
  value: float | None = None
  zeros_like: StateKey | None = None
  sources: tuple[StoredLeaf, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
  """The rules of one layout.

  Attributes:
    name: Its name.
    items: The items that hold a state, the one with the weights first.
    handlers: What `_CHECKPOINT_METADATA` names as reader of an item, by the
      zarr format of its arrays.
    read: Returns the state that opened items hold, given by name; all but the
      first may be missing.
    place: Returns where a leaf is kept; None if it has no place.
    extras: Yields the leaves that rules give, of a state whose leaves are those
      of the target.
    number: Returns the number of the directory for a number of updates.
  """

  name: LayoutName
  items: tuple[str, ...]
  handlers: Mapping[int, str]
  read: Callable[[Mapping[str, Item]], State]
  place: Callable[[StateKey, Naming], Place | None]
  extras: Callable[[State, Naming], Iterator[Extra]]
  number: Callable[[int], int]
