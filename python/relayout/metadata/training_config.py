"""What a step records of the configuration that it was trained with.

It goes into the custom metadata of a step, under the names of MaxText's
options, for whoever loads the step to compare with his own configuration.
"""

from collections.abc import Mapping
from typing import Any

SCAN_LAYERS = "scan_layers"
SCAN_AXIS = "param_scan_axis"
LAYER_PATTERN = "layer_pattern"
"""How layers are grouped to be stacked; MaxText has no such option."""

LORA = "lora"
"""The section of what follows."""

LORA_ENABLED = "enable_lora"
LORA_RANK = "lora_rank"
LORA_ALPHA = "lora_alpha"
LORA_MODULE_PATH = "lora_module_path"
LORA_WEIGHT_QTYPE = "lora_weight_qtype"
LORA_TILE_SIZE = "lora_tile_size"

DEFAULTS: Mapping[str, Any] = {
  SCAN_LAYERS: True,
  SCAN_AXIS: 1,
  LORA_RANK: 0,
  LORA_ALPHA: 0.0,
  LORA_MODULE_PATH: "",
  LORA_WEIGHT_QTYPE: None,
  LORA_TILE_SIZE: None,
}
"""Of MaxText 0.2.5, which a run that does not set the option has."""


def checkpoint_custom_metadata(
  config: Any, *, layer_pattern: str = ""
) -> dict[str, Any]:
  """Returns what a save records of its configuration.

  Args:
    config: MaxText's, or any object with its attributes; None: nothing.
    layer_pattern: How layers are grouped, if that is known.
  """
  recorded: dict[str, Any] = {}
  scan_layers = getattr(config, SCAN_LAYERS, None)
  if scan_layers is not None:
    axis = getattr(config, SCAN_AXIS, None)
    recorded |= form_metadata(scan_layers=scan_layers, scan_axis=axis)
  if layer_pattern:
    recorded[LAYER_PATTERN] = layer_pattern
  section = getattr(config, LORA, None)
  if member(section, LORA_RANK):
    recorded[LORA] = _lora_of(section)
  return recorded


def form_metadata(
  *, scan_layers: bool, scan_axis: int | None = None
) -> dict[str, Any]:
  """Returns the record of whether layers are stacked, and along which axis.

  Args:
    scan_layers: Whether they are.
    scan_axis: Along which axis; None: not known.
  """
  recorded: dict[str, Any] = {SCAN_LAYERS: bool(scan_layers)}
  if scan_layers and scan_axis is not None:
    recorded[SCAN_AXIS] = int(scan_axis)
  return recorded


def lora_metadata(
  rank: int, module_path: str, *, alpha: float | None = None, **more: Any
) -> dict[str, Any]:
  """Returns the section that records adapters.

  Args:
    rank: Of the adapters.
    module_path: Pattern of the modules that have some.
    alpha: Scale of the adapters, if it is known: no array tells it.
    **more: Other members, by MaxText's names; those that are None are left out.
  """
  section: dict[str, Any] = {
    LORA_ENABLED: True,
    LORA_RANK: rank,
    LORA_MODULE_PATH: module_path,
  }
  if alpha is not None:
    section[LORA_ALPHA] = alpha
  return section | {k: v for k, v in more.items() if v is not None}


def member(section: Any, name: str) -> Any:
  """Returns a member of a section, an object or a dict; None if it is not."""
  if isinstance(section, Mapping):
    return section.get(name)
  return getattr(section, name, None)


def _lora_of(section: Any) -> dict[str, Any]:
  return lora_metadata(
    member(section, LORA_RANK),
    member(section, LORA_MODULE_PATH) or "",
    # 0 is what a run has that sets none; it would switch adapters off.
    alpha=member(section, LORA_ALPHA) or None,
    lora_weight_qtype=member(section, LORA_WEIGHT_QTYPE),
    lora_tile_size=member(section, LORA_TILE_SIZE),
  )
