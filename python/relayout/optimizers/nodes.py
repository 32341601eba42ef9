"""A tree taken one level at a time, whatever its containers are.

Optimizer states nest named tuples, tuples, lists, dicts and `nnx.State`; their
leaves are arrays or variables of `nnx`.  Children go by name here: the field,
the index or the key, as text.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from flax import nnx

from relayout.tree.key_path import KeyPath


def children(node: Any) -> dict[str, Any] | None:
  """Returns the children of `node` by name, or None for a leaf.

  None has no children: JAX takes it for an empty container.
  """
  if isinstance(node, nnx.Variable):
    return None
  registry = jax.tree_util.default_registry
  found = registry.flatten_one_level_with_keys(node)
  if found is None:
    return None
  return {_name(key): child for key, child in found[0]}


def replace(node: Any, changed: Mapping[str, Any]) -> Any:
  """Returns a container like `node` with some of its children replaced."""
  found = children(node)
  assert found is not None
  structure = jax.tree.structure(node, is_leaf=lambda x: x is not node)
  return jax.tree.unflatten(structure, (found | dict(changed)).values())


def is_empty(node: Any) -> bool:
  """Tells whether there is no leaf in `node`."""
  return next(leaves(node), None) is None


def leaves(node: Any, at: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
  """Yields the leaves below `node`, each with its path."""
  found = children(node)
  if found is None:
    yield at, node
    return
  for name, child in found.items():
    yield from leaves(child, (*at, name))


def find(node: Any, path: KeyPath) -> Any:
  """Returns what is at `path`, or None if there is nothing."""
  for name in path:
    node = (children(node) or {}).get(name)
  return node


def put(node: Any, path: KeyPath, new: Any) -> Any:
  """Returns `node` with `new` at `path`, where there is something."""
  return update(node, path, lambda _: new)


def update(node: Any, path: KeyPath, change: Callable[[Any], Any]) -> Any:
  """Returns `node` with what is at `path` changed."""
  if not path:
    return change(node)
  child = (children(node) or {})[path[0]]
  return replace(node, {path[0]: update(child, path[1:], change)})


def mapping_like(node: Mapping[Any, Any], members: Mapping[str, Any]) -> Any:
  """Returns a mapping of `node`'s type; its keys are numbers if `node`'s are.

  Raises:
    ValueError: If `node` has numbers for keys, and a name is none.
  """
  make = int if any(isinstance(key, int) for key in node) else str
  # A mapping that JAX knows, such as nnx.State, is made of another one.
  of_mapping: Callable[[dict[Any, Any]], Any] = type(node)
  return of_mapping({make(name): child for name, child in members.items()})


def map_leaves(change: Callable[[Any], Any], node: Any) -> Any:
  """Returns `node` with each leaf changed; a variable is one."""
  members = children(node)
  if members is None:
    return change(node)
  changed = {name: map_leaves(change, child) for name, child in members.items()}
  return replace(node, changed)


def _name(key: Any) -> str:
  for attribute in ("key", "idx", "name"):
    if hasattr(key, attribute):
      return str(getattr(key, attribute))
  return str(key)
