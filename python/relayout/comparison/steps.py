"""Finds the steps that a path leads to, in any layout, by names alone."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from relayout.errors import OptionError, RelayoutError
from relayout.layouts import detect, maxtext, tunix
from relayout.layouts.state import LayoutName
from relayout.metadata.checkpoint import StepDirectory, find_checkpoint
from relayout.metadata.item import open_item

ASIDE = "relayout"
"""The item with leaves that have no place in the layout of their step."""

_LAYOUT_OF_ITEM: Mapping[str, LayoutName] = {
  maxtext.ITEM: "maxtext",
  tunix.MODEL_ITEM: "tunix",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
  """A step, or a single item.

  Attributes:
    path: The step or item directory.
    number: Number of the step, or None.
    layout: The layout it is in.
    items: Directories of the items by the name that the layout has for them.
    others: Its other directories by name, such as a data iterator's `iter`.
    directory: The step directory, where its own metadata is.
    is_item: Whether a single item is meant.
    is_complete: Whether nothing tells that the save was cut short.
  """

  path: Path
  number: int | None
  layout: LayoutName
  items: Mapping[str, Path]
  others: Mapping[str, Path]
  directory: Path
  is_item: bool = False
  is_complete: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Steps:
  """What a path leads to.

  Attributes:
    path: The path, as it was given.
    kind: Whether it names a run, a step or an item.
    steps: The steps, by number; one, unless it is a run.
  """

  path: Path
  kind: Literal["run", "step", "item"]
  steps: tuple[Step, ...]

  def with_number(self, number: int | None) -> tuple[Step, ...]:
    """Returns the step of this number, or all.

    Raises:
      OptionError: If there is no such step.
    """
    if number is None:
      return self.steps
    found = tuple(step for step in self.steps if step.number == number)
    if not found:
      raise OptionError(
        f"--step={number}: {self.path} has no such step; it has "
        f"{', '.join(str(step.number) for step in self.steps)}"
      )
    return found


def find_steps(path: Path) -> Steps:
  """Returns the steps that `path` leads to.

  Raises:
    NotACheckpointError: If it leads to no checkpoint.
  """
  found = find_checkpoint(path)
  if found.item is not None:
    step = found.steps[0] if found.steps else None
    return Steps(path, "item", (_item(found.item, step),))
  return Steps(path, found.kind, tuple(map(_step, found.steps)))


def _step(step: StepDirectory) -> Step:
  known = {maxtext.ITEM, tunix.MODEL_ITEM, tunix.OPTIMIZER_ITEM, ASIDE}
  layout = detect.layout_of_step(step.items)
  names = [name for name in step.items if layout == "unknown" or name in known]
  others = {*step.items, *step.other_items} - {*names}
  return Step(
    path=step.path,
    number=step.number,
    layout=layout,
    items={name: step.path / name for name in names},
    others={name: step.path / name for name in sorted(others)},
    directory=step.path,
    is_complete=not step.ignored,
  )


def _item(path: Path, step: StepDirectory | None) -> Step:
  layout = _layout_of_item(path)
  name = {layout: name for name, layout in _LAYOUT_OF_ITEM.items()}.get(
    layout, path.resolve().name
  )
  return Step(
    path=path,
    number=step.number if step else None,
    layout=layout,
    items={name: path},
    others={},
    directory=path.absolute().parent,
    is_item=True,
  )


def _layout_of_item(path: Path) -> LayoutName:
  known = _LAYOUT_OF_ITEM.get(path.resolve().name)
  if known:
    return known
  try:
    item = open_item(path)
  except RelayoutError:
    return "unknown"
  roots = {leaf.path.names[0] for leaf in item.leaves}
  # The state of an optimizer by itself is no layout's checkpoint.
  is_optimizer = roots <= {"opt_state", "step"}
  return "unknown" if is_optimizer else detect.layout_of_item(item)
