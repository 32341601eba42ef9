"""Reads the state of one source step."""

import dataclasses
from pathlib import Path

from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  UnsupportedError,
)
from relayout.layouts import detect, tunix
from relayout.layouts.state import State
from relayout.metadata.checkpoint import StepDirectory
from relayout.metadata.item import Item, open_item
from relayout.metadata.step_metadata import StepMetadata, read_step_metadata


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
  """One step or one item, read but for the values of its arrays.

  Attributes:
    path: The step or item directory.
    number: Number of the step directory; None if there is none.
    items: The items that were opened.
    state: What they hold.
    metadata: The step's own metadata, or None if it is missing.
    notes: What was missing or odd.
  """

  path: Path
  number: int | None
  items: tuple[Item, ...]
  state: State
  metadata: StepMetadata | None
  notes: tuple[str, ...]


def read_step(step: StepDirectory, *, params_only: bool) -> Source:
  """Reads a Tunix step.

  Raises:
    UnsupportedError: If the step is in another layout.
    CorruptCheckpointError: If stored bytes are damaged.
    LayoutError: If a leaf does not fit the layout.
  """
  if step.ignored:
    raise CorruptCheckpointError(
      f"{step.path}: holds {', '.join(step.ignored)}: the save was cut short "
      "or is still running. Convert another step"
    )
  layout = detect.layout_of_step(step.items)
  if layout == "maxtext":
    raise UnsupportedError(
      f"{step.path}: already in MaxText's layout (`items`); only Tunix "
      "checkpoints can be converted so far"
    )
  if layout != "tunix":
    found = ", ".join(step.items) or "nothing"
    raise LayoutError(
      f"{step.path}: holds {found}; a Tunix step holds `model_params` and "
      "`optimizer_state`"
    )
  model = open_item(step.path / tunix.MODEL_ITEM)
  has_optimizer = tunix.OPTIMIZER_ITEM in step.items
  notes = list(step.notes)
  optimizer = None
  if has_optimizer and not params_only:
    optimizer = open_item(step.path / tunix.OPTIMIZER_ITEM)
  elif has_optimizer:
    notes.append("optimizer_state is left out as a whole (--params_only)")
  else:
    notes.append("the step has no optimizer_state: weights only")
  return _source(step.path, step, model, optimizer, notes)


def read_item(path: Path, step: StepDirectory | None) -> Source:
  """Reads a single Tunix item, which must hold weights.

  Args:
    path: The item.
    step: The step that it stands in, if it does.

  Raises:
    LayoutError: If the item holds something else.
  """
  item = open_item(path)
  layout = detect.layout_of_item(item)
  if layout == "maxtext":
    raise UnsupportedError(
      f"{path}: already in MaxText's layout; only Tunix checkpoints can be "
      "converted so far"
    )
  if layout != "tunix" or _holds_optimizer(item):
    raise LayoutError(
      f"{path}: not the weights of a Tunix checkpoint (`model_params`); its "
      f"first leaf is {item.leaves[0].name if item.leaves else 'missing'}"
    )
  notes = ["a single item: weights only"]
  return _source(path, step, item, None, notes)


def _holds_optimizer(item: Item) -> bool:
  roots = {leaf.path.names[0] for leaf in item.leaves}
  return bool(roots) and roots <= {"opt_state", "step"}


def _source(
  path: Path,
  step: StepDirectory | None,
  model: Item,
  optimizer: Item | None,
  notes: list[str],
) -> Source:
  items = (model,) if optimizer is None else (model, optimizer)
  for item in items:
    _check_store(item)
    notes += item.notes
  state = tunix.read_state(model, optimizer)
  if not state.weight_paths:
    raise CorruptCheckpointError(
      f"{model.directory}: holds no weights; is the checkpoint complete?"
    )
  return Source(
    path=path,
    number=step.number if step else None,
    items=items,
    state=state,
    metadata=read_step_metadata(step.path) if step else None,
    notes=tuple(notes),
  )


def _check_store(item: Item) -> None:
  if item.store != "ocdbt":
    raise UnsupportedError(
      f"{item.directory}: stored as plain zarr directories (use_ocdbt=False); "
      "only OCDBT checkpoints can be converted so far"
    )
