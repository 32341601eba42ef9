"""Steps in a directory, kept by the `Checkpointer` of Orbax v1.

That of Tunix's newer source, whose options it takes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbax.checkpoint import v1 as ocp
from tunix.sft import checkpoint_options

from relayout.trainers.live.tree import SavedStep


class Steps:
  """The steps of one run; see `orbax_v0.Steps`.

  Attributes:
    attribute: What Tunix's manager calls it.
    manager: Orbax's checkpointer.
  """

  attribute = "_checkpointer"

  def __init__(self, directory: str, options: Any) -> None:
    self._options = checkpoint_options.resolve_checkpointing_defaults(options)
    context = ocp.Context()
    context.array.saving.use_ocdbt = True
    context.array.saving.use_zarr3 = True
    self.manager = ocp.training.Checkpointer(
      directory,
      context=context,
      save_decision_policy=self._options.save_decision_policy,
      preservation_policy=self._options.preservation_policy,
      step_name_format=self._options.step_name_format,
    )

  def numbers(self) -> list[int]:
    """Returns the numbers of the complete steps on disk, in order."""
    self.manager.reload()
    return sorted(step.step for step in self.manager.checkpoints)

  def path(self, number: int) -> Path:
    """Returns the directory of a step."""
    name_format = self._options.step_name_format
    name = name_format.build_name(number) if name_format else str(number)
    return Path(self.manager.directory) / name

  def should_save(self, number: int) -> bool:
    """Whether the options ask for a save at this step."""
    return bool(self.manager.should_save(number))

  def save(
    self, number: int, step: SavedStep, custom_metadata: Mapping[str, Any]
  ) -> bool:
    """Saves a step, in the background if the options say so.

    Orbax v1 records nothing with an item, so what belongs to one is recorded
    with the step.
    """
    records = {
      item.name: dict(item.custom_metadata)
      for item in step.items
      if item.custom_metadata
    }
    items = {item.name: item.tree for item in step.items}
    metadata = {**custom_metadata, **records}
    if self._options.enable_async_checkpointing:
      response = self.manager.save_checkpointables_async(
        number, items, force=True, custom_metadata=metadata
      )
      return response is not None
    return bool(
      self.manager.save_checkpointables(
        number, items, force=True, custom_metadata=metadata
      )
    )

  def wait(self) -> None:
    """Waits until nothing is written any more."""
    self.manager.wait()

  def delete(self, number: int) -> None:
    """Removes a step."""
    self.manager.delete(number)
