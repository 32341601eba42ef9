"""The checkpoint manager that a program of MaxText gets."""

from typing import Any

from absl import logging
from flax import nnx

from relayout.errors import UnsupportedError
from relayout.trainers.load import load_state_from_path
from relayout.trainers.maxtext import settings
from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager

FULL_STATE = "load_full_state_path"


class ProgramCheckpointManager(MaxTextLayoutCheckpointManager):
  """Also starts a run from `load_full_state_path`, as pre-training does.

  The post-training programs have the option and ignore it. As there, it counts
  only while the run itself has no checkpoint.
  """

  def maybe_restore(
    self,
    model: nnx.Module,
    optimizer: nnx.Optimizer[Any] | None = None,
    step: int | None = None,
    restore_only_lora_params: bool = False,
  ) -> tuple[int, dict[str, Any]]:
    """Restores the run's own step, else that of `load_full_state_path`.

    Args:
      model: As of the manager of Tunix.
      optimizer: Likewise.
      step: Likewise.
      restore_only_lora_params: Likewise.

    Returns:
      Updates done, and what the step records.

    Raises:
      RelayoutError: As of the base class; and UnsupportedError if a run with
        LoRA shall start from a full state.
    """
    path = settings.text(self._config, FULL_STATE)
    is_own = step is not None or self._steps is None or bool(self._numbers())
    if not path or is_own or optimizer is None:
      return super().maybe_restore(
        model, optimizer, step, restore_only_lora_params
      )
    if restore_only_lora_params:
      raise UnsupportedError(
        f"{FULL_STATE}={path}: a run with LoRA trains no full state. Give the "
        "weights as load_parameters_path, and the adapters as "
        "lora.lora_restore_path"
      )
    loaded = load_state_from_path(
      path,
      getattr(model, "student_model", model),
      optimizer,
      self._config,
      layer_pattern=self._layer_pattern,
    )
    logging.info(
      "%s: loaded the full state of %s, %s updates",
      FULL_STATE,
      loaded.path,
      loaded.updates,
    )
    return loaded.updates or 0, dict(loaded.custom_metadata)

  def restore_iterator(self) -> None:
    """Returns None: a data iterator's state is not kept.

    MaxText's distillation asks for it, and goes on with a fresh one.
    """
    logging.warning(
      "The state of the data iterator is not kept: data begins anew"
    )

  def _numbers(self) -> list[int]:
    assert self._steps is not None
    return self._steps.numbers()
