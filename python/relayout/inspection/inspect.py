"""Collects what is known of a checkpoint without reading its values."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relayout.errors import LayoutError, OptionError
from relayout.layouts import detect, lora, maxtext, stacking, tunix
from relayout.layouts.state import LayoutName, Role, State
from relayout.metadata.checkpoint import Found, StepDirectory, find_checkpoint
from relayout.metadata.item import Item, ItemLeaf, open_item
from relayout.metadata.step_metadata import StepMetadata, read_step_metadata


@dataclasses.dataclass(frozen=True, slots=True)
class StepView:
  """One step, or one item by itself.

  Attributes:
    path: The directory.
    number: The step's number, or None.
    layout: `tunix`, `maxtext` or `unknown`.
    items: The items, opened.
    facts: What was recognised, as (name, value).
    custom_metadata: The step's custom metadata.
    notes: What is missing or odd.
  """

  path: Path
  number: int | None
  layout: LayoutName
  items: tuple[Item, ...]
  facts: tuple[tuple[str, str], ...]
  custom_metadata: dict[str, Any]
  notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Inspection:
  """What a path holds.

  Attributes:
    found: Kind of the path, its steps, what was ignored.
    view: The newest step (or the one asked for) in detail.
  """

  found: Found
  view: StepView


def inspect(path: Path, *, step: int | None = None) -> Inspection:
  """Inspects a run's checkpoint directory, a step or an item.

  Args:
    path: The directory.
    step: Which step of a run to show in detail; None: the newest.

  Raises:
    RelayoutError: If the path holds no checkpoint or a damaged one.
  """
  found = find_checkpoint(path)
  if found.item is not None:
    return Inspection(found, _view_item(found.item))
  return Inspection(found, _view_step(_choose(found, step)))


def _choose(found: Found, number: int | None) -> StepDirectory:
  if number is None:
    return found.steps[-1]
  for step in found.steps:
    if step.number == number:
      return step
  numbers = ", ".join(str(step.number) for step in found.steps)
  raise OptionError(f"--step={number}: no such step; there are {numbers}")


def _view_item(path: Path) -> StepView:
  item = open_item(path)
  layout = detect.layout_of_item(item)
  metadata = read_step_metadata(path.parent)
  return _view(path, None, layout, (item,), metadata, ())


def _view_step(step: StepDirectory) -> StepView:
  items = tuple(open_item(step.path / name) for name in step.items)
  layout = detect.layout_of_step(step.items)
  metadata = read_step_metadata(step.path)
  return _view(step.path, step.number, layout, items, metadata, step.notes)


def _view(
  path: Path,
  number: int | None,
  layout: LayoutName,
  items: tuple[Item, ...],
  metadata: StepMetadata | None,
  notes: tuple[str, ...],
) -> StepView:
  return StepView(
    path=path,
    number=number,
    layout=layout,
    items=items,
    facts=tuple(_facts(layout, items)),
    custom_metadata=dict(metadata.custom_metadata) if metadata else {},
    notes=notes + tuple(note for item in items for note in item.notes),
  )


def _facts(
  layout: LayoutName, items: tuple[Item, ...]
) -> Iterator[tuple[str, str]]:
  try:
    state = _state(layout, items)
    if state:
      yield from _state_facts(state)
  except LayoutError as error:
    yield "not recognised", str(error)


def _state(layout: LayoutName, items: tuple[Item, ...]) -> State | None:
  by_name = {item.name: item for item in items}
  if layout == "maxtext":
    return maxtext.read_state(by_name.get(maxtext.ITEM, items[0]))
  if layout == "tunix":
    model = by_name.get(tunix.MODEL_ITEM)
    optimizer = by_name.get(tunix.OPTIMIZER_ITEM)
    return tunix.read_state(model, optimizer) if model else None
  return None


def _state_facts(state: State) -> Iterator[tuple[str, str]]:
  yield "layers", stacking.scan_mode(state.weight_paths)
  yield "adapter level", state.adapter or "none"
  if state.optimizer:
    yield "optimizer", " in ".join((state.optimizer, *reversed(state.wrappers)))
  if state.step:
    yield "updates", f"{state.step.value} ({state.step.rule})"
  if state.accumulation and state.accumulation.mini_step:
    yield "unfinished accumulation", f"mini_step {state.accumulation.mini_step}"
  adapters = lora.describe(state)
  if adapters:
    only = ", nothing else" if adapters.is_adapter_only else ""
    targets = ", ".join(adapters.targets)
    yield "LoRA", f"rank {adapters.rank} on {targets}{only}"
  quantized = [path for path in state.weight_paths if lora.is_quantized(path)]
  if quantized:
    yield "quantized leaves", str(len(quantized))
  rng = sum(1 for _ in state.with_role(Role.RNG))
  if rng:
    yield "rng leaves", str(rng)


def item_facts(item: Item) -> dict[str, Any]:
  """Returns the form in which an item is stored."""
  formats = sorted({leaf.spec.zarr_format for leaf in item.leaves if leaf.spec})
  return {
    "store": item.store,
    "zarr": formats,
    "num_leaves": len(item.leaves),
    "num_bytes": sum(leaf.spec.num_bytes for leaf in item.leaves if leaf.spec),
    "num_stored_bytes": sum(leaf.num_stored_bytes for leaf in item.leaves),
    "num_chunks": sum(leaf.num_chunks for leaf in item.leaves),
    "missing_side_files": list(item.missing_side_files),
  }


def leaf_facts(leaf: ItemLeaf) -> dict[str, Any]:
  """Returns one row of the table of leaves."""
  if leaf.spec is None:
    return {"name": leaf.name, "value_type": leaf.value_type}
  row: dict[str, Any] = {
    "name": leaf.name,
    "shape": list(leaf.spec.shape),
    "dtype": leaf.spec.dtype,
    "chunk_shape": list(leaf.spec.chunk_shape),
    "num_bytes": leaf.spec.num_bytes,
    "num_stored_bytes": leaf.num_stored_bytes,
  }
  if leaf.spec.inner_chunk_shape:
    row["inner_chunk_shape"] = list(leaf.spec.inner_chunk_shape)
  if leaf.random_key_impl:
    row["random_key_impl"] = leaf.random_key_impl
  return row


def to_json(inspection: Inspection) -> dict[str, Any]:
  """Returns an inspection as JSON values."""
  found, view = inspection.found, inspection.view
  return {
    "path": str(found.root),
    "kind": found.kind,
    "level": found.level,
    "steps": [
      {"number": step.number, "items": list(step.items)} for step in found.steps
    ],
    "ignored": list(found.ignored),
    "step": view.number,
    "layout": view.layout,
    "facts": dict(view.facts),
    "custom_metadata": view.custom_metadata,
    "items": {
      item.name: item_facts(item)
      | {"leaves": [leaf_facts(leaf) for leaf in item.leaves]}
      for item in view.items
    },
    "notes": [*found.notes, *view.notes],
  }
