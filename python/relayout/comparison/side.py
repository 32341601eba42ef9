"""One side of a comparison, read but for the values of its arrays."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from relayout.comparison.oracle import Oracle, open_oracle
from relayout.comparison.record import Record, read_record
from relayout.comparison.steps import ASIDE, Step
from relayout.errors import CorruptCheckpointError
from relayout.layouts import maxtext, tunix
from relayout.layouts.layers import is_layer_number
from relayout.layouts.state import (
  LayoutName,
  Role,
  ScanMode,
  State,
  StateKey,
  StoredLeaf,
)
from relayout.metadata.item import Item, open_item
from relayout.tree.key_path import KeyPath

if TYPE_CHECKING:
  import tensorstore as ts

EMPTY = State(leaves={}, optimizer=None, step=None)

_ROOT = "decoder"
STACKS = (
  "layers",
  "dense_layers",
  "moe_layers",
  "scanned_blocks",
  "layers_remainder",
)
"""What a scanned model calls its layers, and with a number an unscanned one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
  """One side of a comparison.

  Attributes:
    step: Where it is.
    items: The items, that with leaves set aside excluded.
    oracles: What TensorStore finds in each item, by its directory.
    state: What the leaves are, by the rules of the layout.
    aside: The item with leaves that were set aside, or None.
    record: What the step says of itself.
  """

  step: Step
  items: tuple[Item, ...]
  oracles: Mapping[Path, Oracle]
  state: State
  aside: Item | None
  record: Record

  @property
  def mode(self) -> ScanMode:
    """Whether the layers are scanned, by their names.

    Some scanned models have single layers, too; where both occur, what the step
    records decides.
    """
    modes = {_mode_of(path) for path in self.state.weight_paths}
    if {"scanned", "unscanned"} <= modes:
      is_scanned = self.record.custom.get("scan_layers") is not False
      return "scanned" if is_scanned else "unscanned"
    modes.discard("unknown")
    return modes.pop() if modes else "unknown"

  def oracle(self, stored: StoredLeaf) -> Oracle:
    """Returns what TensorStore finds in the item of `stored`."""
    return self.oracles[stored.item.directory]

  def open(self, stored: StoredLeaf) -> "ts.TensorStore":
    """Opens the array of a leaf.

    Raises:
      CorruptCheckpointError: If it can't be opened.
    """
    return self.oracle(stored).open(stored.leaf.name)

  def stored(self) -> Iterator[StoredLeaf]:
    """Yields the leaves of the items."""
    for item in self.items:
      for leaf in item.leaves:
        yield StoredLeaf(item, leaf)

  def labels(self) -> Iterator[str]:
    """Yields the labels of all leaves, and of arrays that no tree names."""
    for item in (*self.items, *([self.aside] if self.aside else [])):
      names = {leaf.name for leaf in item.leaves}
      for name in names | self.oracles[item.directory].arrays.keys():
        yield f"{item.name}/{name}"

  def counters(self) -> Mapping[StateKey, StoredLeaf]:
    """Returns the leaves that say the step and the schedule's position."""
    result = {}
    for role, counter in (
      (Role.SCHEDULE_COUNT, self.state.schedule_count),
      (Role.STEP, self.state.step),
    ):
      if counter is not None and counter.sources:
        result[StateKey(role)] = counter.sources[0]
    return result

  def others(self) -> Iterator[StoredLeaf]:
    """Yields the arrays that are no part of the state."""
    known = {stored.label for stored in self.state.leaves.values()}
    known |= {stored.label for stored in self.counters().values()}
    for stored in self.stored():
      if stored.leaf.spec is not None and stored.label not in known:
        yield stored

  @property
  def naming(self) -> tuple[str, str, tuple[str, ...]]:
    """What the names of leaves that no state has depend on."""
    return self.step.layout, self.state.adapter, self.state.wrappers

  @property
  def origin(self) -> str:
    """What the leaves of such a step are set aside under."""
    return f"{self.step.layout}_{self.mode}"

  def set_aside(self) -> Mapping["AsideKey", StoredLeaf]:
    """Returns the leaves that were set aside, by where they were."""
    if self.aside is None:
      return {}
    return {
      AsideKey(path[0], path[1], path[2:]): StoredLeaf(self.aside, leaf)
      for leaf in self.aside.leaves
      for path in (leaf.path.names,)
      if leaf.spec is not None and len(path) > 2
    }

  def aside_key(self, stored: StoredLeaf) -> "AsideKey":
    """Returns what one of the side's own leaves is set aside under."""
    return AsideKey(self.origin, stored.item.name, stored.leaf.path.names)


class AsideKey(NamedTuple):
  """Where a leaf was before it was set aside.

  Attributes:
    origin: Layout and scan mode of the step, such as `tunix_unscanned`.
    item: The item.
    path: The path in it.
  """

  origin: str
  item: str
  path: KeyPath


def read_side(
  step: Step, *, by_layout: bool = True, weights_only: bool = False
) -> Side:
  """Reads a step or an item.

  Args:
    step: Where it is.
    by_layout: Whether leaves have to follow the layout; else they have no
      meaning, only names.
    weights_only: Whether the optimizer's leaves have no part in the state.

  Raises:
    LayoutError: If it does not follow its layout.
    RelayoutError: If it can't be read.
  """
  if not step.is_complete:
    raise CorruptCheckpointError(
      f"{step.path}: holds a temporary directory: the save was cut short or is "
      "still running"
    )
  items = {name: open_item(path) for name, path in step.items.items()}
  aside = items.pop(ASIDE, None) if step.layout != "unknown" else None
  state = EMPTY
  if by_layout:
    state = read_state(step.layout, items, weights_only=weights_only)
  return Side(
    step=step,
    items=tuple(items.values()),
    oracles={path: open_oracle(path) for path in step.items.values()},
    state=state,
    aside=aside,
    record=read_record(step.directory),
  )


def read_state(
  layout: LayoutName, items: Mapping[str, Item], *, weights_only: bool = False
) -> State:
  """Returns what the leaves of some items are, by the rules of a layout.

  Args:
    layout: The layout.
    items: The items, by the names that it has for them.
    weights_only: Whether the optimizer's leaves have no part in the state.

  Raises:
    LayoutError: If the items do not follow the layout.
  """
  match layout:
    case "maxtext":
      return maxtext.read_state(items[maxtext.ITEM])
    case "tunix":
      optimizer = None if weights_only else items.get(tunix.OPTIMIZER_ITEM)
      return tunix.read_state(items[tunix.MODEL_ITEM], optimizer)
    case "unknown":
      return EMPTY


def _mode_of(path: KeyPath) -> ScanMode:
  if len(path) < 3 or path[0] != _ROOT:
    return "unknown"
  if path[1] in STACKS:
    is_number = is_layer_number(path[2]) and len(path) > 3
    return "unscanned" if is_number else "scanned"
  stack, _, number = path[1].rpartition("_")
  if stack in STACKS and is_layer_number(number):
    return "unscanned"
  return "unknown"
