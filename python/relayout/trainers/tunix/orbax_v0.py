"""Steps in a directory, kept by the `CheckpointManager` of Orbax v0.

That of the released Tunix, 0.1.7.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp
from tunix.sft import checkpoint_manager as tunix_manager

from relayout.convert import aside
from relayout.layouts import maxtext
from relayout.trainers.live.tree import SavedStep

_ITEMS = (maxtext.ITEM, aside.ITEM)


class Steps:
  """The steps of one run.

  Attributes:
    attribute: What Tunix's manager calls it.
    manager: Orbax's manager, which decides when to save and what to keep.
  """

  attribute = "_checkpoint_manager"

  def __init__(
    self, directory: str, options: ocp.CheckpointManagerOptions | None
  ) -> None:
    self._options = options or tunix_manager._DEFAULT_CHECKPOINTING_OPTIONS
    self.manager = ocp.CheckpointManager(
      directory,
      item_handlers={
        name: ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_zarr3=True)
        for name in _ITEMS
      },
      options=self._options,
    )

  def numbers(self) -> list[int]:
    """Returns the numbers of the complete steps on disk, in order."""
    self.manager.reload()
    return sorted(self.manager.all_steps())

  def path(self, number: int) -> Path:
    """Returns the directory of a step."""
    steps = ocp.path.step
    name_format = self._options.step_name_format or steps.standard_name_format(
      step_prefix=self._options.step_prefix,
      step_format_fixed_length=self._options.step_format_fixed_length,
    )
    return Path(self.manager.directory, name_format.build_name(number))

  def should_save(self, number: int) -> bool:
    """Whether the options ask for a save at this step."""
    return bool(self.manager.should_save(number))

  def save(
    self, number: int, step: SavedStep, custom_metadata: Mapping[str, Any]
  ) -> bool:
    """Saves a step, in the background if the options say so."""
    items = {
      item.name: ocp.args.PyTreeSave(
        item.tree,
        custom_metadata=dict(item.custom_metadata or {}) or None,
      )
      for item in step.items
    }
    return bool(
      self.manager.save(
        number,
        args=ocp.args.Composite(**items),
        custom_metadata=dict(custom_metadata),
        force=True,
      )
    )

  def wait(self) -> None:
    """Waits until nothing is written any more."""
    self.manager.wait_until_finished()

  def delete(self, number: int) -> None:
    """Removes a step."""
    self.manager.delete(number)
