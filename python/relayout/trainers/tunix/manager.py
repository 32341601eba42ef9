"""A checkpoint manager for Tunix's trainers that keeps MaxText's layout."""

from collections.abc import Mapping
from typing import Any

from absl import logging
from flax import nnx
from tunix.sft import checkpoint_manager

from relayout.errors import NotACheckpointError
from relayout.layouts import families
from relayout.metadata.training_config import checkpoint_custom_metadata
from relayout.trainers.live.live_state import live_state
from relayout.trainers.live.restoring import Grouping
from relayout.trainers.live.tree import maxtext_step
from relayout.trainers.tunix import restoration
from relayout.trainers.tunix.steps import Steps, open_steps


# Tunix has no types.
class MaxTextLayoutCheckpointManager(checkpoint_manager.CheckpointManager):  # type: ignore[misc]
  """Writes `<step>/items` as MaxText's pre-training does, and reads any layout.

  A drop-in for Tunix's own manager.  Beside `items`, an item `relayout` keeps
  what MaxText has no place for, so that the trainer itself resumes exactly.
  """

  _steps: Steps | None = None  # for one that is closed before it is built

  def __init__(
    self,
    root_directory: str | None = None,
    options: Any = None,
    config: Any = None,
    *,
    layer_pattern: str = "",
  ) -> None:
    """Opens a directory of steps.

    Args:
      root_directory: Where the steps are; None to save and restore nothing.
      options: As Tunix's manager takes them.
      config: MaxText's configuration: what of it a reader needs is recorded
        with each step.
      layer_pattern: How layers are grouped, such as `flat`, where `config` does
        not tell it; needed to restore layers that are stored scanned into a
        model that has them unscanned, or the reverse.
    """
    super().__init__(None)
    self._config = config
    self._layer_pattern = layer_pattern or families.pattern_of_config(config)
    if root_directory:
      self._steps = open_steps(self, str(root_directory), options)
      setattr(self, self._steps.attribute, self._steps.manager)

  def save(
    self,
    step: int,
    model: nnx.Module,
    optimizer: nnx.Optimizer[Any] | None = None,
    save_only_lora_params: bool = False,
    force: bool = False,
    custom_metadata: Mapping[str, Any] | None = None,
  ) -> bool:
    """Saves a step, if the options ask for it.

    The optimizer is left out where the configuration has MaxText's
    `learn_to_init_mode`, as its trainer does it.

    Args:
      step: Its number: updates done.
      model: The model; of a teacher and a student, the student is saved.
      optimizer: Its optimizer; None to save the weights without.
      save_only_lora_params: Leave out all of the model but LoRA adapters.
      force: Save whatever the options say, and in place of a step that is
        there already; without it, such a step stays and nothing is saved.
      custom_metadata: What the step records besides what `config` gives; wins
        over it.

    Returns:
      Whether a save was done, or begun.

    Raises:
      LayoutError: If a variable of the model holds no array.
    """
    if self._steps is None:
      return False
    if not force and not self._steps.should_save(step):
      return False
    if getattr(self._config, "learn_to_init_mode", False):
      optimizer = None
    recorded = {
      **checkpoint_custom_metadata(
        self._config, layer_pattern=self._layer_pattern
      ),
      **(custom_metadata or {}),
    }
    live = live_state(
      _trained(model),
      optimizer,
      only=nnx.LoRAParam if save_only_lora_params else None,
      step=step,
      custom_metadata=recorded,
    )
    saved = maxtext_step(live)
    if not self._make_room(step, force=force):
      return False
    if live.unknown:
      logging.warning(
        "Step %d: the optimizer's state is kept for this trainer's own resume; "
        "MaxText's pre-training would start its optimizer afresh: %s",
        step,
        live.unknown,
      )
    if saved.lost:
      logging.warning(
        "Step %d is in the middle of an update: this trainer's own resume will "
        "see the gradients of %d micro-steps, MaxText won't",
        step,
        saved.lost,
      )
    return self._steps.save(step, saved, saved.custom_metadata | recorded)

  def _make_room(self, step: int, *, force: bool) -> bool:
    """Removes a step that is in the way; False if it stays."""
    assert self._steps is not None
    self._steps.wait()
    if step not in self._steps.numbers():
      return True
    if force:
      logging.warning("Step %d is saved once more, in place of the old", step)
      self._steps.delete(step)
    else:
      logging.info("Step %d is on disk already: not saved", step)
    return force

  def maybe_restore(
    self,
    model: nnx.Module,
    optimizer: nnx.Optimizer[Any] | None = None,
    step: int | None = None,
    restore_only_lora_params: bool = False,
  ) -> tuple[int, dict[str, Any]]:
    """Restores a model and its optimizer in place, from any layout.

    Args:
      model: The model; keeps its shardings, its adapter level and its data
        types.
      optimizer: Its optimizer; keeps what wraps it.
      step: Number of the step; None for the newest that isn't damaged.
      restore_only_lora_params: Restore the LoRA adapters and nothing else of
        the model.

    Returns:
      Updates done, and what the step records; 0 and nothing if there is no
      step.

    Raises:
      CorruptCheckpointError: If there are steps, and all are damaged.
      LayoutError: If the step does not fit the model; lists every leaf.
      NotACheckpointError: If there is no step of that number.
    """
    if self._steps is None:
      return 0, {}
    numbers = self._steps.numbers()
    if step is not None and step not in numbers:
      raise NotACheckpointError(
        f"{self._steps.manager.directory}: has no step {step}; it has {numbers}"
      )
    if not numbers:
      return 0, {}
    live = live_state(
      _trained(model),
      optimizer,
      only=nnx.LoRAParam if restore_only_lora_params else None,
    )
    chosen = numbers if step is None else [step]
    resumed = restoration.newest(
      chosen, self._steps.path, live, self._grouping()
    )
    return resumed.step, resumed.custom_metadata

  def wait_until_finished(self) -> None:
    """Waits until a save in the background is complete.

    Raises:
      Exception: What made it fail.
    """
    if self._steps is not None:
      self._steps.wait()

  def close(self) -> None:
    """Waits until nothing is written any more, and releases everything."""
    if self._steps is not None:
      self._steps.manager.close()

  def _grouping(self) -> Grouping:
    return Grouping(
      layer_pattern=self._layer_pattern,
      scan_axis=getattr(self._config, "param_scan_axis", None),
    )


def _trained(model: nnx.Module) -> nnx.Module:
  """Returns the student, where a model holds a teacher and a student."""
  return getattr(model, "student_model", model)
