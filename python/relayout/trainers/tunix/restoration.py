"""Restores the newest step that can be read."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from relayout.convert import aside
from relayout.convert.source import Source, read_step
from relayout.errors import (
  CorruptCheckpointError,
  NotACheckpointError,
  OptionError,
)
from relayout.layouts import maxtext, tunix
from relayout.metadata.checkpoint import StepDirectory, find_checkpoint
from relayout.metadata.step_metadata import read_step_metadata
from relayout.trainers.live.live_state import LiveState
from relayout.trainers.live.restoring import Grouping, restore

_DAMAGED = (CorruptCheckpointError, NotACheckpointError, OSError)
_ITEMS = frozenset((maxtext.ITEM, *tunix.ITEMS, aside.ITEM))


@dataclasses.dataclass(frozen=True, slots=True)
class Resumed:
  """A run that goes on.

  Attributes:
    step: Updates done.
    custom_metadata: What the step records.
  """

  step: int
  custom_metadata: dict[str, Any]


def newest(
  numbers: Sequence[int],
  path: Callable[[int], Path],
  live: LiveState,
  grouping: Grouping,
) -> Resumed:
  """Restores the newest of some steps that isn't damaged.

  Args:
    numbers: Of the steps; at least one.
    path: Returns the directory of a step.
    live: What is restored, in place.
    grouping: How the live model groups its layers.

  Raises:
    CorruptCheckpointError: If all are damaged.
    LayoutError: If a step does not fit the live state.
  """
  problems = []
  for number in sorted(numbers, reverse=True):
    try:
      return one(number, path(number), live, grouping)
    except _DAMAGED as error:
      problems.append(f"{path(number)}: {error}")
      logging.warning(
        "Step %d is damaged, trying an older one: %s", number, error
      )
  listed = "\n  ".join(problems)
  raise CorruptCheckpointError(
    f"none of {len(problems)} steps can be restored:\n  {listed}\nTo start "
    "afresh, name another directory"
  )


def one(
  number: int, path: Path, live: LiveState, grouping: Grouping
) -> Resumed:
  """Restores one step; see `newest`."""
  step_directory = find_checkpoint(path).steps[0]
  _check_complete(step_directory)
  source = read_step(step_directory, params_only=False)
  try:
    restored = restore(source, live, grouping)
  except OptionError as error:
    raise OptionError(
      f"{error}. (In Python: the argument layer_pattern, or a config that has "
      "model_name)"
    ) from error
  for note in restored.notes:
    logging.info("%s: %s", path, note)
  wants_optimizer = tunix.OPTIMIZER_ITEM in live.variables
  if wants_optimizer and not restored.has_optimizer:
    logging.warning("%s holds no optimizer state: it starts afresh", path)
  step = _updates(number, restored.updates, source)
  logging.info("Restored %s: %d updates", path, step)
  metadata = source.metadata.custom_metadata if source.metadata else {}
  return Resumed(step, dict(metadata))


def _check_complete(step: StepDirectory) -> None:
  """Checks that no item was lost since the step was saved.

  Raises:
    CorruptCheckpointError: If one is; without it, a part of the state would
      start afresh.
  """
  metadata = read_step_metadata(step.path)
  saved = metadata.item_handlers if metadata else None
  if not isinstance(saved, Mapping):
    return
  lost = sorted(_ITEMS & saved.keys() - {*step.items})
  if lost:
    raise CorruptCheckpointError(
      f"{step.path}: was saved with {', '.join(lost)}, and has it no more; was "
      "it left out when the step was copied?"
    )


def _updates(number: int, updates: int | None, source: Source) -> int:
  """Returns the updates done: Tunix's directories are called by them.

  A directory of MaxText's pre-training is not: N holds N + 1 updates.
  """
  if source.layout == "tunix" or updates is None:
    return number
  if updates != number:
    logging.info(
      "%s holds %d updates: steps are counted from there", source.path, updates
    )
  return updates
