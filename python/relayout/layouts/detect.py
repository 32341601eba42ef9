"""Which layout a directory holds, from names and metadata alone."""

from collections.abc import Collection

from relayout.layouts import maxtext, tunix
from relayout.layouts.state import LayoutName
from relayout.metadata.item import Item

_MAXTEXT_ROOTS = frozenset({"params", "opt_state", "step", "nnx_aux"})


def layout_of_step(item_names: Collection[str]) -> LayoutName:
  """Returns the layout of a step that holds items of these names."""
  if maxtext.ITEM in item_names:
    return "maxtext"
  if tunix.MODEL_ITEM in item_names:
    return "tunix"
  return "unknown"


def layout_of_item(item: Item) -> LayoutName:
  """Returns the layout of a single item, from its leaves' paths."""
  paths = [leaf.path.names for leaf in item.leaves]
  roots = {path[0] for path in paths}
  if roots and roots <= _MAXTEXT_ROOTS and "params" in roots:
    return "maxtext"
  if paths and all(path[-1] == "value" for path in paths):
    return "tunix"
  return "unknown"
