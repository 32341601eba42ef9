"""The plan of a conversion: plain data, printable, testable without a file."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayout.layouts.state import Dropped, ScanMode, StoredLeaf
from relayout.metadata.item import Item
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import TypedPath, dotted


@dataclasses.dataclass(frozen=True, slots=True)
class Moved:
  """The target leaf is a source leaf under another name."""

  source: StoredLeaf


@dataclasses.dataclass(frozen=True, slots=True)
class Stacked:
  """The target leaf stacks source leaves, layer 0 first, along `axis`."""

  sources: tuple[StoredLeaf, ...]
  axis: int


@dataclasses.dataclass(frozen=True, slots=True)
class Derived:
  """The target leaf is a scalar that a rule gives; None: an empty leaf."""

  rule: str
  value: int | None
  sources: tuple[StoredLeaf, ...] = ()


type Origin = Moved | Stacked | Derived


@dataclasses.dataclass(frozen=True, slots=True)
class TargetLeaf:
  """One leaf of the target item.

  Attributes:
    path: Key path, with the kinds of its containers.
    spec: Array metadata; None for an empty leaf.
    origin: Where its values come from.
    write_shape: Shape of one device's part; `()` for an empty leaf.
    random_key_impl: Implementation of a typed rng key, or None.
    sharding: Text for `_sharding`, or None for an empty leaf.
  """

  path: TypedPath
  spec: ArraySpec | None
  origin: Origin
  write_shape: tuple[int, ...] = ()
  random_key_impl: str | None = None
  sharding: str | None = None

  @property
  def name(self) -> str:
    """Name of the array in the store."""
    return dotted(self.path.names)


@dataclasses.dataclass(frozen=True, slots=True)
class StepPlan:
  """What one step of the source becomes.

  Attributes:
    source: The step or item directory.
    source_number: Its number as a directory, or None.
    target_number: Number of the target's step directory.
    items: The source's items that are read.
    leaves: Leaves of the target item.
    dropped: Source leaves that are left out, each with the reason.
    source_mode: Whether the source's layers are scanned.
    target_mode: Whether the target's layers are.
    custom_metadata: The target step's custom metadata.
    facts: What was recognised, as (name, value), for the report.
    notes: What the user should know.
  """

  source: Path
  source_number: int | None
  target_number: int
  items: tuple[Item, ...]
  leaves: tuple[TargetLeaf, ...]
  dropped: tuple[Dropped, ...]
  source_mode: ScanMode
  target_mode: ScanMode
  custom_metadata: Mapping[str, Any]
  facts: tuple[tuple[str, str], ...] = ()
  notes: tuple[str, ...] = ()

  @property
  def zarr_format(self) -> int:
    """Format of the target's arrays; they all have the same."""
    return next((leaf.spec.zarr_format for leaf in self.leaves if leaf.spec), 3)

  @property
  def stores_fill_values(self) -> bool:
    """Whether chunks that equal the fill value are stored in every item."""
    trees = [item.tree for item in self.items]
    return all(
      tree is not None and bool(tree.store_array_data_equal_to_fill_value)
      for tree in trees
    )

  @property
  def num_array_bytes(self) -> int:
    """Size of the target's arrays in memory, bytes."""
    return sum(leaf.spec.num_bytes for leaf in self.leaves if leaf.spec)
