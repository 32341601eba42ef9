"""What a live state becomes in MaxText's layout, as trees to be saved."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from relayout.convert import aside
from relayout.convert.options import Options
from relayout.convert.plan import ItemPlan, Stored, TargetLeaf
from relayout.convert.planner import plan_towards
from relayout.trainers.live.live_state import LiveState
from relayout.tree.key_path import KeyKind, TypedPath

_OPTIONS = Options(to="maxtext", step_numbering="keep", force=True)
_ACCUMULATED = "acc_grads"


@dataclasses.dataclass(frozen=True, slots=True)
class SavedItem:
  """An item to be saved.

  Attributes:
    name: Its name.
    tree: Nested dicts and lists; an empty member of a list is None.
    custom_metadata: What its `_METADATA` says besides the tree.
  """

  name: str
  tree: Mapping[str, Any]
  custom_metadata: Mapping[str, Any] | None


@dataclasses.dataclass(frozen=True, slots=True)
class SavedStep:
  """A step to be saved.

  Attributes:
    items: `items`, and what has no place there.
    custom_metadata: What the step records.
    lost: Micro-steps since the last update, whose gradients MaxText won't see.
  """

  items: tuple[SavedItem, ...]
  custom_metadata: dict[str, Any]
  lost: int


def maxtext_step(live: LiveState) -> SavedStep:
  """Returns a live state in MaxText's layout.

  The arrays are those of the live state, not copies.

  Raises:
    LayoutError: If leaves do not fit together.
  """
  plan = plan_towards(live.source, _OPTIONS, None)
  accumulation = live.state.accumulation
  lost = accumulation.mini_step if accumulation else 0
  mesh = _mesh(live)
  items = []
  for item in plan.targets:
    kept = item if lost else _without_accumulated(item)
    if kept.leaves:
      tree = _tree(kept, live, mesh)
      items.append(SavedItem(kept.name, tree, kept.custom_metadata))
  return SavedStep(tuple(items), dict(plan.custom_metadata), lost)


def _without_accumulated(item: ItemPlan) -> ItemPlan:
  """Leaves out zeros of the size of the model, which a rule gives back."""
  if item.name != aside.ITEM:
    return item
  leaves = tuple(
    leaf for leaf in item.leaves if _ACCUMULATED not in leaf.path.names
  )
  return dataclasses.replace(item, leaves=leaves)


def _tree(
  item: ItemPlan, live: LiveState, mesh: jax.sharding.Mesh | None
) -> dict[str, Any]:
  root: dict[str, Any] = {}
  for leaf in item.leaves:
    _insert(root, leaf.path, _value(leaf, live, mesh))
  return root


def _insert(root: dict[str, Any], path: TypedPath, value: Any) -> None:
  """Puts a value into nested dicts and lists, which grow as needed."""
  node: Any = root
  following = [*path.kinds[1:], None]
  for name, kind, below in zip(path.names, path.kinds, following, strict=True):
    key: Any = name
    if kind is KeyKind.SEQUENCE:
      key = int(name)
      node.extend([None] * (key + 1 - len(node)))
    if below is None:
      node[key] = value
      return
    child = node[key] if isinstance(node, list) else node.get(key)
    if child is None:
      child = node[key] = [] if below is KeyKind.SEQUENCE else {}
    node = child


def _value(
  leaf: TargetLeaf, live: LiveState, mesh: jax.sharding.Mesh | None
) -> Any:
  if leaf.spec is None:
    return None
  if isinstance(leaf.origin, Stored):
    [slot] = leaf.origin.slots
    return _global(live.variable(slot.source).value, mesh)
  value = np.asarray(leaf.origin.value, dtype=leaf.spec.dtype)
  return _global(jax.numpy.asarray(value), mesh)


def _mesh(live: LiveState) -> jax.sharding.Mesh | None:
  """Returns the mesh that the state is sharded over, if it is."""
  for lives in live.variables.values():
    for variable in lives.values():
      sharding = getattr(variable.data, "sharding", None)
      if isinstance(sharding, jax.sharding.NamedSharding):
        mesh = sharding.mesh
        if isinstance(mesh, jax.sharding.Mesh) and mesh.size > 1:
          return mesh
  return None


def _global(value: Any, mesh: jax.sharding.Mesh | None) -> Any:
  """Replicates what lies on one device over the mesh that the rest is on."""
  if mesh is None or not isinstance(value, jax.Array):
    return value
  if len(value.sharding.device_set) > 1:
    return value
  # JAX gives P no types.
  everywhere = jax.NamedSharding(mesh, jax.P())  # type: ignore[no-untyped-call]
  return jax.device_put(value, everywhere)
