"""What a step says of itself, and what a conversion says of its making."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayout.errors import CorruptCheckpointError
from relayout.metadata import safe_json
from relayout.metadata.step_metadata import read_step_metadata

PROVENANCE = "relayout.json"
"""File in a step that relayout made."""


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
  """Facts that arrays don't show.

  Attributes:
    custom: The step's custom metadata; empty if it is missing or damaged.
    options: What was asked for when the step was made; empty if it was not
      made by relayout. This explains, and decides nothing.
    is_conversion: Whether relayout made the step.
  """

  custom: Mapping[str, Any]
  options: Mapping[str, Any]
  is_conversion: bool = False

  @property
  def scan_axis(self) -> int | None:
    """Where the step says that scanned layers have their axis, or None."""
    return _axis(self.custom.get("param_scan_axis"))

  @property
  def source_scan_axis(self) -> int | None:
    """Where the source was said to have the axis, or None."""
    return _axis(self.options.get("source_scan_axis"))

  @property
  def patterns(self) -> Mapping[str, str]:
    """Layer patterns and model names, by where each is from."""
    found: dict[str, str] = {}
    for where, values in (
      ("the step's metadata", self.custom),
      (PROVENANCE, self.options),
    ):
      text = values.get("layer_pattern")
      if isinstance(text, str) and text:
        found[f"layer_pattern of {where}"] = text
    return found

  @property
  def model_name(self) -> str:
    """Model name that the conversion was given, or ""."""
    name = self.options.get("model_name")
    return name if isinstance(name, str) else ""


def _axis(value: Any) -> int | None:
  is_axis = isinstance(value, int) and not isinstance(value, bool)
  return value if is_axis and value >= 0 else None


def read_record(step: Path) -> Record:
  """Returns what the files in a step directory say."""
  try:
    metadata = read_step_metadata(step)
  except CorruptCheckpointError:
    metadata = None
  provenance = _read_provenance(step)
  options = provenance.get("options")
  return Record(
    custom=metadata.custom_metadata if metadata else {},
    options=options if isinstance(options, dict) else {},
    is_conversion=bool(provenance),
  )


def _read_provenance(step: Path) -> dict[str, Any]:
  path = step / PROVENANCE
  if not path.is_file():
    return {}
  try:
    content = safe_json.read(path)
  except CorruptCheckpointError:
    return {}
  return content if isinstance(content, dict) else {}
