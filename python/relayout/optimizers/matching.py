"""Puts the values of one tree into the containers of another, by name."""

from typing import Any

from relayout.errors import LayoutError
from relayout.optimizers import leaves, nodes
from relayout.optimizers.counts import shown
from relayout.tree.key_path import KeyPath


def fill(source: Any, like: Any, at: KeyPath) -> Any:
  """Returns the tree `like` with the values of `source`, as they are.

  Containers may be of another kind, and what holds no leaf may be absent.

  Raises:
    LayoutError: If a leaf is missing, superfluous, or of another shape.
  """
  wanted, found = nodes.children(like), nodes.children(source)
  if wanted is None:
    return _leaf(source, like, at)
  if found is None:
    raise LayoutError(
      f"{shown(at)}: a single array, where {', '.join(wanted) or 'nothing'} is "
      "expected"
    )
  for name in found:
    if name not in wanted and not nodes.is_empty(found[name]):
      raise LayoutError(
        f"{shown((*at, name))}: the optimizer that this is for has no such "
        f"state, but {', '.join(wanted) or 'none'}"
      )
  return nodes.replace(
    like,
    {
      name: fill(found.get(name), child, (*at, name))
      for name, child in wanted.items()
    },
  )


def _leaf(source: Any, like: Any, at: KeyPath) -> Any:
  if nodes.children(source) is not None:
    raise LayoutError(f"{shown(at)}: missing from the state that was given")
  shapes = [
    getattr(leaves.value_of(leaf), "shape", None) for leaf in (source, like)
  ]
  if None not in shapes and shapes[0] != shapes[1]:
    raise LayoutError(
      f"{shown(at)}: shape {shapes[0]}, but the optimizer that this is for "
      f"has {shapes[1]}"
    )
  return leaves.holding(like, source)
