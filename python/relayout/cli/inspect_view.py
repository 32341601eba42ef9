"""An inspection as text."""

from collections.abc import Iterator

from relayout.cli import table
from relayout.inspection.inspect import Inspection, StepView, item_facts
from relayout.metadata.item import Item, ItemLeaf


def render(inspection: Inspection) -> str:
  """Returns the inspection as text, without a final newline."""
  return "\n".join(_lines(inspection))


def _lines(inspection: Inspection) -> Iterator[str]:
  found, view = inspection.found, inspection.view
  yield f"{found.root}: {found.kind} in {view.layout} layout"
  if found.steps:
    level = f" below `{found.level}`" if found.level else ""
    numbers = ", ".join(str(step.number) for step in found.steps)
    yield f"steps{level}: {numbers}"
  if found.ignored:
    yield f"left alone: {', '.join(found.ignored)}"
  for note in found.notes:
    yield f"note: {note}"
  yield ""
  yield from _view_lines(view)


def _view_lines(view: StepView) -> Iterator[str]:
  name = f"step {view.number}" if view.number is not None else str(view.path)
  yield name
  rows = [*view.facts]
  if view.custom_metadata:
    rows.append(("custom metadata", str(view.custom_metadata)))
  if rows:
    yield table.columns(rows)
  for item in view.items:
    yield ""
    yield from _item_lines(item)
  if view.notes:
    yield ""
  for note in view.notes:
    yield f"note: {note}"


def _item_lines(item: Item) -> Iterator[str]:
  facts = item_facts(item)
  formats = " and ".join(f"zarr v{number}" for number in facts["zarr"])
  yield (
    f"item {item.name}: {item.store}, {formats or 'no arrays'}, "
    f"{table.count(facts['num_leaves'], 'leaf')}, "
    f"{table.count(facts['num_chunks'], 'chunk')}, "
    f"{table.size(facts['num_bytes'])} ({table.size(facts['num_stored_bytes'])}"
    " stored)"
  )
  header = ("leaf", "shape", "dtype", "chunk", "bytes")
  yield table.columns([header, *(_row(leaf) for leaf in item.leaves)])


def _row(leaf: ItemLeaf) -> tuple[str, str, str, str, str]:
  spec = leaf.spec
  if spec is None:
    return (leaf.name, "-", leaf.value_type, "-", "0")
  chunk = table.shape(spec.chunk_shape)
  if spec.inner_chunk_shape and spec.inner_chunk_shape != spec.chunk_shape:
    chunk += f" of {table.shape(spec.inner_chunk_shape)}"
  return (
    leaf.name,
    table.shape(spec.shape),
    spec.dtype,
    chunk,
    str(spec.num_bytes),
  )
