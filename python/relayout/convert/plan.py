"""The plan of a conversion: plain data, printable, testable without a file."""

import dataclasses
import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayout.layouts.state import Dropped, LayoutName, ScanMode, StoredLeaf
from relayout.metadata.item import Item
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import TypedPath, dotted

type Pins = tuple[tuple[int, int], ...]
"""Axes of an array that are fixed, each with its index."""


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
  """A part of a source array and the part of a target array that it becomes.

  The axes that are not pinned correspond in their order.

  Attributes:
    source: The source array.
    source_pins: The layer that is taken; empty for the whole array.
    target_pins: The layer that it becomes; empty for the whole array.
  """

  source: StoredLeaf
  source_pins: Pins = ()
  target_pins: Pins = ()


class Way(enum.Enum):
  """How the bytes of an array come into the target, cheapest first."""

  REKEYED = "re-keyed"
  REKEYED_IN_SHARD = "re-keyed inside a shard"
  REWRITTEN = "rewritten"


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
  """The target leaf consists of stored arrays, or of layers of them.

  Attributes:
    slots: The parts; a stack has layer 0 first.
    way: How their bytes come into the target.
    reason: Why they must be rewritten; "" if they are not.
  """

  slots: tuple[Slot, ...]
  way: Way = Way.REKEYED
  reason: str = ""

  @property
  def verb(self) -> str:
    """What happens to the layers: renamed, stacked, unstacked, restacked."""
    is_layer = any(slot.source_pins for slot in self.slots)
    becomes_layer = any(slot.target_pins for slot in self.slots)
    if becomes_layer:
      return "restacked" if is_layer else "stacked"
    return "unstacked" if is_layer else "renamed"

  @property
  def sources(self) -> tuple[StoredLeaf, ...]:
    """The stored arrays, each once."""
    return tuple(
      {slot.source.label: slot.source for slot in self.slots}.values()
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Derived:
  """The target leaf has values that a rule gives.

  Attributes:
    rule: How they were found.
    value: The scalar; None for an empty leaf, an array, or where `is_zero`.
    sources: The stored leaves it was read from.
    values: The elements of an array of uint32, in C order.
    is_zero: Whether it is an array of zeros.
  """

  rule: str
  value: float | None
  sources: tuple[StoredLeaf, ...] = ()
  values: tuple[int, ...] = ()
  is_zero: bool = False


type Origin = Stored | Derived


@dataclasses.dataclass(frozen=True, slots=True)
class TargetLeaf:
  """One leaf of a target item.

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
class ItemPlan:
  """One item of the target step.

  Attributes:
    name: Its directory's name.
    handler: What `_CHECKPOINT_METADATA` says reads it.
    leaves: Sorted by path.
    custom_metadata: What `_METADATA` says besides the tree; None: nothing.
  """

  name: str
  handler: str
  leaves: tuple[TargetLeaf, ...]
  custom_metadata: Mapping[str, Any] | None = None

  @property
  def zarr_format(self) -> int:
    """Format of the arrays; they all have the same."""
    return next((leaf.spec.zarr_format for leaf in self.leaves if leaf.spec), 3)


@dataclasses.dataclass(frozen=True, slots=True)
class StepPlan:
  """What one step of the source becomes.

  Attributes:
    source: The step or item directory.
    source_number: Its number as a directory, or None.
    target_number: Number of the target's step directory.
    layout: The target's.
    items: The source's items that are read.
    targets: The target's items.
    carried: Directories of the source step that are carried along as they are.
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
  layout: LayoutName
  items: tuple[Item, ...]
  targets: tuple[ItemPlan, ...]
  carried: tuple[Path, ...]
  dropped: tuple[Dropped, ...]
  source_mode: ScanMode
  target_mode: ScanMode
  custom_metadata: Mapping[str, Any]
  facts: tuple[tuple[str, str], ...] = ()
  notes: tuple[str, ...] = ()

  @property
  def leaves(self) -> tuple[TargetLeaf, ...]:
    """Leaves of all target items."""
    return tuple(leaf for item in self.targets for leaf in item.leaves)

  @property
  def has_optimizer(self) -> bool:
    """Whether the target has the state of an optimizer."""
    return any(
      leaf.path.names[0] == "opt_state"
      for item in self.targets
      for leaf in item.leaves
    )

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
