"""The custom metadata of the step that a path leads to."""

import os
import pathlib
from typing import Any

from relayout.errors import NotACheckpointError
from relayout.metadata.checkpoint import Found, find_checkpoint
from relayout.metadata.step_metadata import StepMetadata, read_step_metadata


def load_checkpoint_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
  """Returns the custom metadata of a step, or {} if it records none.

  Nothing above the step is looked at.

  Args:
    path: The step, or an item directly below it, such as `1000/items`.

  Raises:
    CorruptCheckpointError: If the metadata is damaged.
    NotACheckpointError: If `path` is neither.
  """
  found = find_checkpoint(path)
  if found.kind == "run":
    raise NotACheckpointError(
      f"{path}: holds {len(found.steps)} steps; give the one to be loaded, "
      f"such as {found.steps[-1].path}"
    )
  metadata = _read(found)
  return dict(metadata.custom_metadata) if metadata else {}


def _read(found: Found) -> StepMetadata | None:
  """Reads at the step; at an item only if it is no part of a step that says."""
  places: list[pathlib.Path] = [step.path for step in found.steps]
  if found.item is not None:
    places.append(found.item)
  for place in places:
    metadata = read_step_metadata(place)
    if metadata is not None:
      return metadata
  return None
