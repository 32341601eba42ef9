"""Puts a stored state, of whatever layout, into a live model and optimizer.

Planned as a conversion to the layout of Tunix that looks like the live state,
whose leaves are then not written but read.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from relayout.convert.options import Options, ScanLayers
from relayout.convert.plan import Derived, Slot, Stored, TargetLeaf
from relayout.convert.planner import plan_towards
from relayout.convert.reference import Reference
from relayout.convert.source import Source
from relayout.errors import LayoutError
from relayout.layouts import rng, stacking, tunix
from relayout.layouts.state import Role, ScanMode
from relayout.layouts.wrappers import Wrappers
from relayout.trainers.live import arrays, matching
from relayout.trainers.live.arrays import Wanted
from relayout.trainers.live.live_state import LiveState
from relayout.trainers.live.matching import Match
from relayout.trainers.live.variables import LiveVariable

_LAYERS: Mapping[ScanMode, ScanLayers] = {
  "scanned": "true",
  "unscanned": "false",
  "unknown": "keep",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Grouping:
  """How the live model groups its layers; needed to stack or unstack.

  Attributes:
    layer_pattern: Which layers are stacked together, such as `flat`; "" if it
      isn't known.
    scan_axis: Where it has its layer axis if it scans; None: MaxText's default.
  """

  layer_pattern: str = ""
  scan_axis: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Restored:
  """What was put into a live state.

  Attributes:
    updates: Updates done, or None if the checkpoint doesn't say.
    has_optimizer: Whether the optimizer was restored.
    notes: What stayed as it was, and other facts for the log.
  """

  updates: int | None
  has_optimizer: bool
  notes: tuple[str, ...]


def restore(
  source: Source,
  live: LiveState,
  grouping: Grouping,
  *,
  needs_optimizer: bool = False,
) -> Restored:
  """Reads a stored state into a live one; nothing is changed if that fails.

  Args:
    source: What is stored.
    live: What is restored, in place.
    grouping: How the live model groups its layers.
    needs_optimizer: Whether the optimizer must be stored; without it, the live
      one may stay as it is.

  Raises:
    CorruptCheckpointError: If stored bytes are damaged.
    LayoutError: If the two differ, and lists every leaf; or if there is no
      optimizer state and it is needed.
    OptionError: If it isn't known how layers are grouped.
  """
  options = _options(source, live, grouping)
  plan = plan_towards(source, options, _reference(live))
  planned = {
    item.name: {leaf.name: leaf for leaf in item.leaves}
    for item in plan.targets
    if item.name in live.variables
  }
  if source.state.optimizer is None and tunix.OPTIMIZER_ITEM in live.variables:
    planned |= _as_it_was(source, live)
  if needs_optimizer and tunix.OPTIMIZER_ITEM not in planned:
    raise LayoutError(
      f"{source.path}: holds no optimizer state. To load the weights alone, "
      "leave the optimizer out"
    )
  match = matching.match(planned, source, live)
  values = dict(_values(match))
  for name, value in values.items():
    match.variables[name].put(value)
  return Restored(
    updates=source.state.step.value if source.state.step else None,
    has_optimizer=tunix.OPTIMIZER_ITEM in planned,
    notes=match.notes,
  )


def _as_it_was(
  source: Source, live: LiveState
) -> dict[str, dict[str, TargetLeaf]]:
  """Returns the leaves of an optimizer that MaxText's layout has no names for.

  They were set aside as they were.

  Raises:
    LayoutError: If they are those of other layers than the live ones.
  """
  name = tunix.OPTIMIZER_ITEM
  if source.aside is None:
    return {}
  mode = stacking.scan_mode(live.state.weight_paths)
  found: dict[str, TargetLeaf] = {}
  for key, origin in source.aside.origins.items():
    for place, stored in source.aside.leaves[key].items():
      if place.item == name and origin.mode != mode:
        raise LayoutError(
          f"{source.path}: its optimizer is of a kind that relayout can't "
          f"stack, and its layers are {origin.mode}, the model's {mode}. "
          "Restore without an optimizer"
        )
      if place.item == name:
        origin_leaf = Stored((Slot(stored),))
        leaf = TargetLeaf(place.path, stored.leaf.spec, origin_leaf)
        found[leaf.name] = leaf
  return {name: found} if found else {}


def _options(source: Source, live: LiveState, grouping: Grouping) -> Options:
  state = live.state
  mode = stacking.scan_mode(state.weight_paths)
  with_optimizer = tunix.OPTIMIZER_ITEM in live.variables
  options = Options(
    to="tunix",
    scan_layers=_LAYERS[mode],
    scan_axis=grouping.scan_axis if mode == "scanned" else None,
    layer_pattern=grouping.layer_pattern,
    adapter=state.adapter,
    rng="keep" if _has_keys_of_maxtext(live) else "derive",
    force=True,
  )
  if with_optimizer and source.state.optimizer is not None:
    wrappers = str(Wrappers(state.wrappers))
    options = dataclasses.replace(options, optimizer_wrappers=wrappers)
  return options


def _has_keys_of_maxtext(live: LiveState) -> bool:
  keys = [
    stored
    for key, stored in live.state.with_role(Role.RNG)
    if key.path[-1] == "key"
  ]
  return bool(keys) and {*map(rng.key_impl, keys)} == {rng.MAXTEXT_IMPL}


def _reference(live: LiveState) -> Reference:
  return Reference(
    source=live.source,
    leaves={
      item.name: {leaf.name: leaf for leaf in item.leaves}
      for item in live.source.items
    },
  )


def _values(match: Match) -> Iterator[tuple[str, Any]]:
  """Yields the new value of each variable."""
  stored = []
  for name, leaf in match.leaves.items():
    variable = match.variables[name]
    if isinstance(leaf.origin, Stored):
      stored.append(_wanted(name, variable, leaf.origin))
    else:
      yield name, _derived(variable, leaf.origin)
  yield from arrays.read_arrays(stored)


def _wanted(name: str, variable: LiveVariable, origin: Stored) -> Wanted:
  data = variable.data
  return Wanted(
    name=name,
    slots=origin.slots,
    shape=tuple(data.shape),
    dtype=np.dtype(data.dtype),
    sharding=arrays.sharding_of(data),
  )


def _derived(variable: LiveVariable, origin: Derived) -> Any:
  """Returns values that a rule gives, where the live ones lie."""
  data = variable.data
  shape, dtype = tuple(data.shape), np.dtype(data.dtype)
  if origin.is_zero:
    value = np.zeros(shape, dtype)
  elif origin.values:
    words = np.array(origin.values, np.uint32)
    value = words.reshape(shape).astype(dtype)
  else:
    value = np.full(shape, origin.value, dtype)
  return jax.device_put(value, arrays.sharding_of(data))
