"""Holds a run's configuration against what a checkpoint records.

What the run left open is filled in, and what it set must not contradict.  The
functions stand here and not with the metadata that they read: where nothing is
recorded, the names of the leaves tell, and names are a matter of layouts.
"""

import copy
import dataclasses
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from absl import logging

from relayout.errors import LayoutError
from relayout.layouts import stacking
from relayout.layouts.state import ScanMode
from relayout.metadata import training_config
from relayout.metadata.checkpoint import find_checkpoint
from relayout.metadata.custom import load_checkpoint_metadata
from relayout.metadata.item import open_item
from relayout.metadata.training_config import (
  DEFAULTS,
  LORA,
  LORA_ALPHA,
  LORA_MODULE_PATH,
  LORA_RANK,
  LORA_TILE_SIZE,
  LORA_WEIGHT_QTYPE,
  SCAN_AXIS,
  SCAN_LAYERS,
)
from relayout.tree.key_path import KeyPath

_LORA_OPTIONS = (
  LORA_RANK,
  LORA_ALPHA,
  LORA_MODULE_PATH,
  LORA_WEIGHT_QTYPE,
  LORA_TILE_SIZE,
)
_MODEL_ROOT = "decoder"


@dataclasses.dataclass(frozen=True, slots=True)
class Synced:
  """A configuration that agrees with a checkpoint.

  Attributes:
    config: The one given, or a changed copy of its type.
    origin: What the checkpoint's side is from: `recorded`, `names` of its
      leaves, or `nothing`, which leaves the configuration as it was.
    changed: Options that were filled in, with their values.
  """

  config: Any
  origin: Literal["recorded", "names", "nothing"]
  changed: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def verify_and_sync_scan_layers(
  config: Any,
  path: str | os.PathLike[str],
  *,
  explicit: Collection[str] | None = None,
) -> Synced:
  """Makes `scan_layers` and `param_scan_axis` agree with a checkpoint.

  Args:
    config: MaxText's, or any object with these attributes.
    path: The step to be loaded, or its item.
    explicit: Names of the options that the run sets.  None: those that MaxText
      takes for set on the command line, by keyword or in the environment;
      for a configuration that doesn't tell, those that have another value than
      MaxText's default.

  Raises:
    LayoutError: If the run sets an option to another value than the
      checkpoint's.
    NotACheckpointError: If `path` is neither a step nor an item.
  """
  recorded = _recorded_form(load_checkpoint_metadata(path))
  origin: Literal["recorded", "names", "nothing"] = "recorded"
  if SCAN_LAYERS not in recorded:
    mode = infer_scan_mode(path)
    origin = "nothing" if mode == "unknown" else "names"
    if mode != "unknown":
      recorded[SCAN_LAYERS] = mode == "scanned"
  if recorded.get(SCAN_LAYERS) is False:
    recorded.pop(SCAN_AXIS, None)
  changes = {}
  for name, value in recorded.items():
    own = getattr(config, name, None)
    if own == value:
      continue
    if _is_set(config, name, explicit):
      raise _contradicts(name, own, value, path, origin)
    changes[name] = value
  return _synced(config, changes, origin, path)


def sync_lora_metadata(
  config: Any,
  path: str | os.PathLike[str],
  *,
  explicit: Collection[str] | None = None,
) -> Synced:
  """Makes the section `lora` agree with the adapters of a checkpoint.

  Rank, alpha, module path and quantization are filled in and compared.  Whether
  adapters are trained at all, `enable_lora`, stays the run's own affair.

  Args:
    config: MaxText's, or any object with a section `lora`, an object or a dict.
    path: The step that holds the adapters, or its item.
    explicit: Names of the options that the run sets; None: those of another
      value than MaxText's default, which no run with adapters can do with.

  Raises:
    LayoutError: If the run sets an option to another value than the recorded
      one.
    NotACheckpointError: If `path` is neither a step nor an item.
  """
  recorded = load_checkpoint_metadata(path).get(LORA)
  section = getattr(config, LORA, None)
  if not isinstance(recorded, Mapping) or section is None:
    return Synced(config, "nothing")
  changes = {}
  for name in _LORA_OPTIONS:
    value = recorded.get(name)
    if value is None or value == DEFAULTS[name]:
      continue  # recorded as unset, which says nothing
    own = training_config.member(section, name)
    if own == value:
      continue
    is_set = own not in (None, DEFAULTS[name])
    if explicit is not None:
      is_set = name in explicit
    if is_set:
      raise _contradicts(f"{LORA}.{name}", own, value, path, "recorded")
    changes[name] = value
  if not changes:
    return Synced(config, "recorded")
  filled = {f"{LORA}.{name}": value for name, value in changes.items()}
  _say(filled, path, "recorded")
  new = _with(config, {LORA: _with(section, changes)})
  return Synced(new, "recorded", filled)


def infer_scan_mode(path: str | os.PathLike[str]) -> ScanMode:
  """Tells from the names of a checkpoint's leaves whether layers are stacked.

  Args:
    path: A step, or an item.

  Raises:
    NotACheckpointError: If `path` is neither.
  """
  found = find_checkpoint(path)
  items = [found.item] if found.item else []
  if not items:
    items = [step.path / name for step in found.steps for name in step.items]
  for item in items:
    mode = stacking.scan_mode(
      below
      for leaf in open_item(item).leaves
      for below in _below_model(leaf.path.names)
    )
    if mode != "unknown":
      return mode
  return "unknown"


def _below_model(path: KeyPath) -> Iterator[KeyPath]:
  """Yields the part of a path that is within the model, whatever the layout."""
  if _MODEL_ROOT in path:
    yield path[path.index(_MODEL_ROOT) :]


def _recorded_form(recorded: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what is recorded, where it is of the right type."""
  found = {}
  if isinstance(recorded.get(SCAN_LAYERS), bool):
    found[SCAN_LAYERS] = recorded[SCAN_LAYERS]
  axis = recorded.get(SCAN_AXIS)
  if isinstance(axis, int) and not isinstance(axis, bool):
    found[SCAN_AXIS] = axis
  return found


def _is_set(config: Any, name: str, explicit: Collection[str] | None) -> bool:
  """Tells whether the run sets an option."""
  value = getattr(config, name, None)
  if value is None:
    return False
  if explicit is None:
    explicit = getattr(_pydantic(config), "model_fields_set", None)
  if explicit is None:
    return bool(value != DEFAULTS[name])
  return name in explicit


def _synced(
  config: Any,
  changes: Mapping[str, Any],
  origin: Literal["recorded", "names", "nothing"],
  path: str | os.PathLike[str],
) -> Synced:
  if not changes:
    return Synced(config, origin)
  _say(changes, path, origin)
  return Synced(_with(config, changes), origin, changes)


def _say(
  changes: Mapping[str, Any], path: str | os.PathLike[str], origin: str
) -> None:
  for name, value in changes.items():
    logging.info("%s=%s, %s", name, value, _source(path, origin))


def _source(path: str | os.PathLike[str], origin: str) -> str:
  if origin == "names":
    return f"as the names of the leaves in {path} have it; nothing is recorded"
  return f"as {path} records"


def _contradicts(
  name: str,
  own: Any,
  value: Any,
  path: str | os.PathLike[str],
  origin: str,
) -> LayoutError:
  return LayoutError(
    f"the run sets {name}={own}, but it is {value}, {_source(path, origin)}. "
    f"Pass {name}={value} or leave it out, or convert the checkpoint"
  )


def _pydantic(config: Any) -> Any:
  """Returns the model within MaxText's HyperParameters."""
  return getattr(config, "_pydantic_config", config)


def _with(config: Any, changes: Mapping[str, Any]) -> Any:
  """Returns a copy of a configuration, or of a section, with changes."""
  model = _pydantic(config)
  if isinstance(model, Mapping):
    return {**model, **changes}
  if hasattr(model, "model_copy"):
    changed = model.model_copy(update=dict(changes))
    return changed if model is config else type(config)(changed)
  changed = copy.copy(model)
  for name, value in changes.items():
    setattr(changed, name, value)
  return changed
