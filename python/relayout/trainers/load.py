"""Loads a checkpoint of any layout straight into a live model.

Nothing is converted on disk: each device reads its own part of each array, and
layers are stacked or unstacked on the way.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import logging
from flax import nnx

from relayout.convert.source import Source, read_item, read_step
from relayout.errors import OptionError
from relayout.layouts import families
from relayout.metadata.checkpoint import find_checkpoint
from relayout.trainers.live.live_state import LiveState, live_state
from relayout.trainers.live.restoring import Grouping, restore


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
  """What a checkpoint told besides its values.

  Attributes:
    path: The step or item that was read.
    updates: Updates done, or None if it doesn't say.
    custom_metadata: What the step records.
    notes: Variables that stay as they were, leaves that are not used.
  """

  path: Path
  updates: int | None
  custom_metadata: Mapping[str, Any]
  notes: tuple[str, ...]


def load_params_from_path(
  path: str | os.PathLike[str],
  model: nnx.Module,
  config: Any = None,
  *,
  layer_pattern: str = "",
) -> Loaded:
  """Loads the weights of a checkpoint into a model, in place.

  Variables that are no weights are loaded too where they are stored.

  Args:
    path: A run's checkpoints, of which the newest is taken, a step, or an item
      such as `<step>/items` or `<step>/model_params`.
    model: The model; keeps its shardings, its adapter level and data types.
    config: MaxText's configuration, which tells how layers are grouped and
      where the layer axis is; or None.
    layer_pattern: How layers are grouped, such as `flat`, where no config tells
      it; needed only to stack or unstack layers.

  Raises:
    CorruptCheckpointError: If stored bytes are damaged.
    LayoutError: If the checkpoint does not fit the model; lists every leaf.
    OptionError: If it isn't known how layers are grouped.
    NotACheckpointError: If there is no checkpoint.
  """
  live = live_state(model)
  source = _read(Path(path), params_only=True)
  return _load(source, live, config, layer_pattern)


def load_state_from_path(
  path: str | os.PathLike[str],
  model: nnx.Module,
  optimizer: nnx.Optimizer[Any],
  config: Any = None,
  *,
  layer_pattern: str = "",
) -> Loaded:
  """Loads weights, optimizer state, counters and rng state, in place.

  Args:
    path: A run's checkpoints, of which the newest is taken, or a step.
    model: As of `load_params_from_path`.
    optimizer: The model's optimizer; keeps what wraps it.
    config: As of `load_params_from_path`.
    layer_pattern: As of `load_params_from_path`.

  Raises:
    RelayoutError: As of `load_params_from_path`; and LayoutError if no
      optimizer state is stored.
  """
  live = live_state(model, optimizer)
  source = _read(Path(path), params_only=False)
  return _load(source, live, config, layer_pattern, needs_optimizer=True)


def _read(path: Path, *, params_only: bool) -> Source:
  """Reads what a path leads to; of a run, the newest step."""
  found = find_checkpoint(path)
  step = found.steps[-1] if found.steps else None
  if found.item is None or not params_only:
    if step is None:
      raise OptionError(f"{path}: a single item; name the step that holds it")
    return read_step(step, params_only=params_only)
  return read_item(found.item, step)


def _load(
  source: Source,
  live: LiveState,
  config: Any,
  layer_pattern: str,
  *,
  needs_optimizer: bool = False,
) -> Loaded:
  grouping = Grouping(
    layer_pattern=layer_pattern or families.pattern_of_config(config),
    scan_axis=getattr(config, "param_scan_axis", None),
  )
  restored = restore(source, live, grouping, needs_optimizer=needs_optimizer)
  for note in restored.notes:
    logging.info("%s: %s", source.path, note)
  return Loaded(
    path=source.path,
    updates=restored.updates,
    custom_metadata=source.metadata.custom_metadata if source.metadata else {},
    notes=restored.notes,
  )
