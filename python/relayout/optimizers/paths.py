"""Stripping and restoring by key paths alone, as stores and listings have it.

Members without arrays are absent there, and digits are names like others.
"""

from collections.abc import Mapping
from typing import Any

from relayout.errors import LayoutError
from relayout.optimizers import nodes
from relayout.optimizers.wrappers import restore_wrappers, strip_wrappers
from relayout.tree.key_path import KeyPath, dotted


def strip_paths(
  leaves: Mapping[KeyPath, Any], *, drop_accumulated: bool = False
) -> dict[KeyPath, Any]:
  """Returns the leaves of the plain state, by path; see `strip_wrappers`.

  Args:
    leaves: Leaves below `opt_state`, arrays or anything that stands for them.
    drop_accumulated: As of `strip_wrappers`.

  Raises:
    LayoutError: If one leaf lies below another.
  """
  stripped = strip_wrappers(_nest(leaves), drop_accumulated=drop_accumulated)
  return dict(nodes.leaves(stripped.state))


def restore_paths(
  plain: Mapping[KeyPath, Any],
  like: Mapping[KeyPath, Any],
  *,
  num_updates: int | None = None,
) -> dict[KeyPath, Any]:
  """Returns the leaves of the state `like`, by path; see `restore_wrappers`.

  Args:
    plain: Leaves of the plain state.
    like: Leaves of the state of the optimizer that is to go on.
    num_updates: As of `restore_wrappers`.

  Raises:
    LayoutError: If one leaf lies below another, or they do not fit.
  """
  state = restore_wrappers(_nest(plain), _nest(like), num_updates=num_updates)
  return dict(nodes.leaves(state))


def _nest(leaves: Mapping[KeyPath, Any]) -> dict[str, Any]:
  root: dict[str, Any] = {}
  containers = {id(root)}
  for path, leaf in leaves.items():
    node = root
    for name in path[:-1]:
      if name not in node:
        node[name] = {}
        containers.add(id(node[name]))
      node = node[name]
      if id(node) not in containers:
        raise LayoutError(f"{dotted(path)}: lies below another leaf")
    if path[-1] in node:
      raise LayoutError(f"{dotted(path)}: other leaves lie below it")
    node[path[-1]] = leaf
  return root
