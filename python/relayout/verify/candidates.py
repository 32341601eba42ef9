"""Finds the steps of either side, by names alone."""

import dataclasses
from pathlib import Path

from relayout.errors import LayoutError, NotACheckpointError, UnsupportedError
from relayout.layouts import detect, maxtext, tunix
from relayout.metadata.checkpoint import Found, StepDirectory, find_checkpoint


@dataclasses.dataclass(frozen=True, slots=True)
class SourceStep:
  """A step in Tunix's layout, or a single item of weights.

  Attributes:
    path: The step or item directory.
    number: Number of the step, or None.
    model: Directory of the weights.
    optimizer: Directory of the optimizer state; None for weights alone.
  """

  path: Path
  number: int | None
  model: Path
  optimizer: Path | None


@dataclasses.dataclass(frozen=True, slots=True)
class TargetStep:
  """A step in MaxText's layout.

  Attributes:
    path: The step directory, where its own metadata is.
    number: Number of the step, or None.
    item: Directory of the item `items`.
  """

  path: Path
  number: int | None
  item: Path


def find_source(path: Path) -> tuple[SourceStep, ...]:
  """Returns the Tunix steps that `path` leads to.

  Raises:
    LayoutError: If a step is neither in Tunix's layout nor in MaxText's.
    NotACheckpointError: If `path` leads to no checkpoint.
    UnsupportedError: If all that it leads to is in MaxText's layout already.
  """
  found = find_checkpoint(path)
  if found.item is not None:
    return (_source_item(found, found.item),)
  steps = [step for step in found.steps if not _is_maxtext(step)]
  if not steps:
    raise UnsupportedError(
      f"{path}: SOURCE is in MaxText's layout (`items`); verify compares a "
      "Tunix checkpoint with what became of it. Are SOURCE and TARGET swapped?"
    )
  return tuple(_source_step(step) for step in steps)


def find_target(path: Path) -> tuple[TargetStep, ...]:
  """Returns the MaxText steps that `path` leads to.

  Raises:
    NotACheckpointError: If `path` leads to no checkpoint, or to none in
      MaxText's layout.
  """
  found = find_checkpoint(path)
  if found.item is not None:
    return (_target_item(found, found.item),)
  steps = [step for step in found.steps if _is_maxtext(step)]
  if not steps:
    items = sorted({item for step in found.steps for item in step.items})
    raise NotACheckpointError(
      f"{path}: TARGET holds no step in MaxText's layout (`items`), but "
      f"{', '.join(items)}. Are SOURCE and TARGET swapped?"
    )
  return tuple(
    TargetStep(step.path, step.number, step.path / maxtext.ITEM)
    for step in steps
  )


def _is_maxtext(step: StepDirectory) -> bool:
  return detect.layout_of_step(step.items) == "maxtext"


def _source_step(step: StepDirectory) -> SourceStep:
  if tunix.MODEL_ITEM not in step.items:
    raise LayoutError(
      f"{step.path}: SOURCE holds {', '.join(step.items)}; a Tunix step holds "
      f"`{tunix.MODEL_ITEM}` and `{tunix.OPTIMIZER_ITEM}`"
    )
  optimizer = None
  if tunix.OPTIMIZER_ITEM in step.items:
    optimizer = step.path / tunix.OPTIMIZER_ITEM
  return SourceStep(
    step.path, step.number, step.path / tunix.MODEL_ITEM, optimizer
  )


def _source_item(found: Found, item: Path) -> SourceStep:
  if item.resolve().name in (maxtext.ITEM, tunix.OPTIMIZER_ITEM):
    raise UnsupportedError(
      f"{item}: SOURCE is an item without Tunix's weights; give the step, or "
      f"its `{tunix.MODEL_ITEM}`"
    )
  number = found.steps[0].number if found.steps else None
  return SourceStep(item, number, item, None)


def _target_item(found: Found, item: Path) -> TargetStep:
  if item.resolve().name in (tunix.MODEL_ITEM, tunix.OPTIMIZER_ITEM):
    raise NotACheckpointError(
      f"{item}: TARGET is an item in Tunix's layout. Are SOURCE and TARGET "
      "swapped?"
    )
  number = found.steps[0].number if found.steps else None
  return TargetStep(item.absolute().parent, number, item)
