"""Puts the manager into a trainer that was built with Tunix's own."""

import contextlib
from typing import Any

from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager


def install(
  trainer: Any,
  checkpoint_dir: str,
  config: Any = None,
  *,
  layer_pattern: str = "",
) -> MaxTextLayoutCheckpointManager:
  """Replaces a trainer's checkpoint manager, and restores the newest step.

  Build the trainer with `checkpoint_root_directory=None`, or Tunix's manager
  tries to restore first, which only knows its own layout.

  Args:
    trainer: A `PeftTrainer` or one of its kind (preference optimization, the
      actor of reinforcement learning, distillation), before it trains.
    checkpoint_dir: Where the steps are.
    config: MaxText's configuration, or None.
    layer_pattern: As of the manager.

  Returns:
    The manager, which the trainer closes with itself. If there is a step, the
    trainer's counters of updates and of batches stand where it was saved; else
    as before.

  Raises:
    RelayoutError: As of `maybe_restore`; the trainer then keeps the manager
      that it had.
  """
  manager = MaxTextLayoutCheckpointManager(
    checkpoint_dir,
    trainer.config.checkpointing_options,
    config,
    layer_pattern=layer_pattern,
  )
  try:
    step, metadata = manager.maybe_restore(
      trainer.model,
      trainer.optimizer,
      restore_only_lora_params=trainer._lora_enabled,
    )
  except BaseException:
    # What closing meets is of no use beside why nothing was restored.
    with contextlib.suppress(Exception):
      manager.close()
    raise
  replaced, trainer.checkpoint_manager = trainer.checkpoint_manager, manager
  replaced.close()
  if manager.latest_step() is not None:
    _set_counters(trainer, step, metadata)
  return manager


def _set_counters(trainer: Any, step: int, metadata: dict[str, Any]) -> None:
  batches = trainer.config.get_with_default("gradient_accumulation_steps", 1)
  trainer._train_steps = step
  trainer._iter_steps = step * batches
  trainer._restored_custom_metadata = metadata
