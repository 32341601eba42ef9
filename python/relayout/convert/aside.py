"""Leaves that have no place in the target's layout, kept beside it.

Rng state of another kind, counters of wrappers and the like go into an item of
our own, under the names that they had.  The target's trainer does not look
there; a conversion back to the layout and form they came from puts them where
they were.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from relayout.errors import CorruptCheckpointError
from relayout.layouts.layout import Place
from relayout.layouts.state import LayoutName, ScanMode, StoredLeaf
from relayout.metadata.item import Item
from relayout.metadata.json_value import JsonValue
from relayout.metadata.step_metadata import StepMetadata
from relayout.tree.key_path import KeyKind, TypedPath

ITEM = "relayout"
"""Name of the item."""

_RECORD = "set_aside"
_MAX_AXIS = 2
_MAX_UPDATES = (1 << 62) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
  """The layout and form that leaves were set aside from.

  Attributes:
    layout: The layout.
    mode: Whether the layers were scanned.
    scan_axis: Where the layer axis was.
    adapter: The adapter level, or "".
    wrappers: What wrapped the optimizer, outermost first.
    has_schedule: Whether the optimizer kept the position of a schedule.
    updates: Updates done at that time; None if it was not known.
    custom_metadata: The step's custom metadata.
  """

  layout: LayoutName
  mode: ScanMode
  scan_axis: int
  adapter: str
  wrappers: tuple[str, ...]
  has_schedule: bool
  updates: int | None
  custom_metadata: Mapping[str, Any]

  @property
  def key(self) -> str:
    """Tells origins apart; leaves are set aside below it."""
    return f"{self.layout}_{self.mode}"

  def to_json(self) -> dict[str, Any]:
    """Returns the record as JSON values."""
    return dataclasses.asdict(self) | {"wrappers": list(self.wrappers)}


@dataclasses.dataclass(frozen=True, slots=True)
class Aside:
  """The item, opened.

  Attributes:
    item: The item.
    origins: Where the leaves came from, by key.
    leaves: The leaves of each origin, by where they were.
  """

  item: Item
  origins: Mapping[str, Origin]
  leaves: Mapping[str, Mapping[Place, StoredLeaf]]


def read_aside(item: Item, step: StepMetadata | None = None) -> Aside:
  """Returns what an earlier conversion, or a checkpoint manager, set aside.

  Args:
    item: The item.
    step: What its step says; some managers put the item's record there.

  Raises:
    CorruptCheckpointError: If its record is not what relayout writes.
  """
  custom = item.tree.custom_metadata if item.tree else None
  if custom is None and step is not None:
    custom = step.custom_metadata.get(ITEM)
  record = custom.get(_RECORD) if isinstance(custom, dict) else None
  if not isinstance(record, dict):
    raise CorruptCheckpointError(
      f"{item.directory}: not an item of relayout: its _METADATA has no record "
      f"`{_RECORD}`. Remove the directory, or rename it"
    )
  origins = [
    _origin(value, f"{item.directory}: {_RECORD}: {key}")
    for key, value in record.items()
  ]
  leaves: dict[str, dict[Place, StoredLeaf]] = {o.key: {} for o in origins}
  for leaf in item.leaves:
    key, *rest = leaf.path.names
    if leaf.spec is not None and key in leaves and len(rest) > 1:
      leaves[key][_place(leaf.path)] = StoredLeaf(item, leaf)
  return Aside(item, {o.key: o for o in origins}, leaves)


_LAYOUT_NAMES: tuple[LayoutName, ...] = ("maxtext", "tunix")
_MODES: tuple[ScanMode, ...] = ("scanned", "unscanned", "unknown")


def _origin(value: Any, where: str) -> Origin:
  found = JsonValue(value, where)
  return Origin(
    layout=_one_of(_LAYOUT_NAMES, found["layout"]),
    mode=_one_of(_MODES, found["mode"]),
    scan_axis=found["scan_axis"].integer(minimum=0, maximum=_MAX_AXIS),
    adapter=found["adapter"].text(),
    wrappers=tuple(each.text() for each in found["wrappers"].elements()),
    has_schedule=found["has_schedule"].boolean(),
    updates=_updates(found["updates"]),
    custom_metadata=found["custom_metadata"].members(),
  )


def _one_of[T: str](choices: tuple[T, ...], found: JsonValue) -> T:
  matching = [choice for choice in choices if choice == found.text()]
  if not matching:
    found.fail(f"one of {', '.join(choices)}")
  return matching[0]


def _updates(found: JsonValue) -> int | None:
  if found.value is None:
    return None
  return found.integer(minimum=0, maximum=_MAX_UPDATES)


def record(origins: Iterable[Origin]) -> dict[str, Any]:
  """Returns the item's custom metadata."""
  return {_RECORD: {origin.key: origin.to_json() for origin in origins}}


def aside_path(origin: Origin, place: Place) -> TypedPath:
  """Returns where the leaf that was at `place` is set aside."""
  path = place.path
  kinds = (KeyKind.DICT, KeyKind.DICT, *path.kinds)
  return TypedPath((origin.key, place.item, *path.names), kinds)


def _place(path: TypedPath) -> Place:
  return Place(path.names[1], TypedPath(path.names[2:], path.kinds[2:]))
