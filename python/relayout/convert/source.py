"""Reads the state of one source step, in whichever layout it is."""

import dataclasses
from pathlib import Path

from relayout.convert import aside
from relayout.errors import CorruptCheckpointError, LayoutError
from relayout.layouts import detect
from relayout.layouts.layout import Layout
from relayout.layouts.registry import LAYOUTS
from relayout.layouts.state import LayoutName, State
from relayout.metadata.checkpoint import StepDirectory
from relayout.metadata.item import Item, open_item
from relayout.metadata.step_metadata import StepMetadata, read_step_metadata


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
  """One step or one item, read but for the values of its arrays.

  Attributes:
    path: The step or item directory.
    number: Number of the step directory; None if there is none.
    layout: The layout it is in.
    items: The items that were opened, that of `aside` included.
    state: What they hold.
    aside: What an earlier conversion set aside, or None.
    carried: The step's other directories, which go along as they are.
    metadata: The step's own metadata, or None if it is missing.
    notes: What was missing or odd.
  """

  path: Path
  number: int | None
  layout: LayoutName
  items: tuple[Item, ...]
  state: State
  aside: aside.Aside | None
  carried: tuple[Path, ...]
  metadata: StepMetadata | None
  notes: tuple[str, ...]


def read_step(step: StepDirectory, *, params_only: bool) -> Source:
  """Reads a step.

  Raises:
    CorruptCheckpointError: If stored bytes are damaged.
    LayoutError: If the step is in no known layout, or a leaf does not fit it.
  """
  if step.ignored:
    raise CorruptCheckpointError(
      f"{step.path}: holds {', '.join(step.ignored)}: the save was cut short "
      "or is still running. Convert another step"
    )
  layout = detect.layout_of_step(step.items)
  if layout == "unknown":
    found = ", ".join(step.items) or "nothing"
    raise LayoutError(
      f"{step.path}: holds {found}; a Tunix step holds `model_params` and "
      "`optimizer_state`, a step of MaxText `items`"
    )
  return _of_layout(step, LAYOUTS[layout], params_only=params_only)


def read_item(path: Path, step: StepDirectory | None) -> Source:
  """Reads a single item, which must hold weights.

  Args:
    path: The item.
    step: The step that it stands in, if it does.

  Raises:
    LayoutError: If the item holds something else.
  """
  item = open_item(path)
  layout = detect.layout_of_item(item)
  if layout == "unknown" or _holds_optimizer(item):
    raise LayoutError(
      f"{path}: neither the weights of a Tunix checkpoint (`model_params`) nor "
      f"an item of MaxText (`items`); its first leaf is "
      f"{item.leaves[0].name if item.leaves else 'missing'}"
    )
  rules = LAYOUTS[layout]
  state = rules.read({rules.items[0]: item})
  return _source(path, step, layout, (item,), state, ["a single item"])


def _holds_optimizer(item: Item) -> bool:
  roots = {leaf.path.names[0] for leaf in item.leaves}
  return bool(roots) and roots <= {"opt_state", "step"}


def _of_layout(
  step: StepDirectory, layout: Layout, *, params_only: bool
) -> Source:
  """Reads the items of a layout, and what else the step directory holds."""
  weights, *others = layout.items
  items = {weights: open_item(step.path / weights)}
  notes = list(step.notes)
  for name in others:
    if name not in step.items:
      notes.append(f"the step has no {name}: weights only")
    elif params_only:
      notes.append(f"{name} is left out as a whole (--params_only)")
    else:
      items[name] = open_item(step.path / name)
  opened = tuple(items.values())
  state = layout.read(items)
  source = _source(step.path, step, layout.name, opened, state, notes)
  return source if params_only else _with_rest(source, step, layout)


def _with_rest(source: Source, step: StepDirectory, layout: Layout) -> Source:
  """Adds what was set aside, and the directories that are carried along."""
  known = {*layout.items, aside.ITEM}
  others = {*step.items, *step.other_items} - known
  carried = tuple(step.path / name for name in sorted(others))
  if aside.ITEM not in step.items:
    return dataclasses.replace(source, carried=carried)
  kept = aside.read_aside(open_item(step.path / aside.ITEM), source.metadata)
  return dataclasses.replace(
    source, items=(*source.items, kept.item), aside=kept, carried=carried
  )


def _source(
  path: Path,
  step: StepDirectory | None,
  layout: LayoutName,
  items: tuple[Item, ...],
  state: State,
  notes: list[str],
) -> Source:
  for item in items:
    notes += item.notes
  if not state.weight_paths:
    raise CorruptCheckpointError(
      f"{items[0].directory}: holds no weights; is the checkpoint complete?"
    )
  return Source(
    path=path,
    number=step.number if step else None,
    layout=layout,
    items=items,
    state=state,
    aside=None,
    carried=(),
    metadata=read_step_metadata(step.path) if step else None,
    notes=tuple(notes),
  )
