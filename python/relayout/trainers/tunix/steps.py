"""The steps of a run, kept by the Orbax that the installed Tunix uses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from relayout.trainers.live.tree import SavedStep


class Steps(Protocol):
  """The steps of one run.

  Attributes:
    attribute: What Tunix's manager calls Orbax's.
    manager: Orbax's manager, which decides when to save and what to keep.
  """

  attribute: str
  manager: Any

  def numbers(self) -> list[int]:
    """Returns the numbers of the complete steps on disk, in order."""
    ...

  def path(self, number: int) -> Path:
    """Returns the directory of a step."""
    ...

  def should_save(self, number: int) -> bool:
    """Whether the options ask for a save at this step."""
    ...

  def save(
    self, number: int, step: SavedStep, custom_metadata: Mapping[str, Any]
  ) -> bool:
    """Saves a step, in the background if the options say so."""
    ...

  def wait(self) -> None:
    """Waits until nothing is written any more."""
    ...

  def delete(self, number: int) -> None:
    """Removes a step."""
    ...


def open_steps(manager: object, directory: str, options: Any) -> Steps:
  """Opens a directory of steps.

  Args:
    manager: A manager of the installed Tunix, which tells its Orbax.
    directory: The directory; made if it is not there.
    options: As the installed Tunix takes them; None for its defaults.
  """
  if hasattr(manager, "_checkpointer"):
    from relayout.trainers.tunix import orbax_v1

    return orbax_v1.Steps(directory, options)
  from relayout.trainers.tunix import orbax_v0

  return orbax_v0.Steps(directory, options)
