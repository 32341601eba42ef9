"""MaxText's layout: one item `items` with params, opt_state, step, nnx_aux.

The released MaxText 0.2.5 writes it in `common/train_state_nnx.py`: weights in
the collection `params`, AdamW as a list whose stateless member is None, the
moments below `params` too, and what else the model keeps under `nnx_aux`.
"""

from collections.abc import Mapping

from relayout.errors import LayoutError
from relayout.layouts.state import (
  Counter,
  OptimizerKind,
  Role,
  State,
  StateKey,
  StoredLeaf,
)
from relayout.layouts.variables import is_rng
from relayout.metadata.item import Item, ItemLeaf
from relayout.metadata.step_metadata import PYTREE_HANDLER
from relayout.tree.key_path import KeyKind, KeyPath, TypedPath, dotted

ITEM = "items"
HANDLER = PYTREE_HANDLER
COUNT_DTYPE = "int32"

_WEIGHTS = ("params", "params")
_AUXILIARY = ("nnx_aux", "model")
_MOMENT_COLLECTION = "params"

_ADAM_MEMBER = "0"
_SCHEDULE_MEMBER = "2"
STATELESS_MEMBER = TypedPath(
  ("opt_state", "1"), (KeyKind.DICT, KeyKind.SEQUENCE)
)
"""Weight decay, which keeps no state: a None leaf of AdamW's list."""


def place(key: StateKey, optimizer: OptimizerKind | None) -> TypedPath:
  """Returns where MaxText keeps a leaf of the state.

  Args:
    key: What the leaf is.
    optimizer: Which optimizer the state has; for moments and counts.
  """
  match key.role:
    case Role.WEIGHT:
      return TypedPath.of_dicts((*_WEIGHTS, *key.path))
    case Role.RNG | Role.AUXILIARY:
      return TypedPath.of_dicts((*_AUXILIARY, *key.path))
    case Role.STEP:
      return TypedPath.of_dicts(("step",))
    case Role.COUNT:
      return _in_optimizer(optimizer, _ADAM_MEMBER, ("count",))
    case Role.SCHEDULE_COUNT:
      return _in_optimizer(optimizer, _SCHEDULE_MEMBER, ("count",))
    case Role.MOMENT:
      below = (key.slot, _MOMENT_COLLECTION, *key.path)
      return _in_optimizer(optimizer, _ADAM_MEMBER, below)


def _in_optimizer(
  optimizer: OptimizerKind | None, member: str, below: KeyPath
) -> TypedPath:
  """AdamW is a list of members, adam_pax one flat dict."""
  if optimizer == "adam_pax":
    return TypedPath.of_dicts(("opt_state", *below))
  names = ("opt_state", member, *below)
  kinds = (KeyKind.DICT, KeyKind.SEQUENCE) + (KeyKind.DICT,) * len(below)
  return TypedPath(names, kinds)


def read_state(item: Item) -> State:
  """Reads the item `items` of a MaxText step.

  Raises:
    LayoutError: If a leaf does not fit the layout; names it.
  """
  optimizer = _optimizer_kind(item)
  leaves: dict[StateKey, StoredLeaf] = {}
  for leaf in item.leaves:
    if leaf.spec is not None:
      leaves[_key_of(leaf, optimizer)] = StoredLeaf(item, leaf)
  return State(leaves=leaves, optimizer=optimizer, step=_step(leaves))


def _optimizer_kind(item: Item) -> OptimizerKind | None:
  paths = [leaf.path.names for leaf in item.leaves]
  members = {path[1] for path in paths if path[0] == "opt_state" and path[1:]}
  if not members:
    return None
  return "adamw" if _ADAM_MEMBER in members else "adam_pax"


def _step(leaves: Mapping[StateKey, StoredLeaf]) -> Counter | None:
  stored = leaves.get(StateKey(Role.STEP))
  if stored is None:
    return None
  return Counter(stored.read_int(), "step", (stored,))


def _key_of(leaf: ItemLeaf, optimizer: OptimizerKind | None) -> StateKey:
  path = leaf.path.names
  if path == ("step",):
    return StateKey(Role.STEP)
  if path[:2] == _WEIGHTS and path[2:]:
    return StateKey(Role.WEIGHT, path[2:])
  if path[:2] == _AUXILIARY and path[2:]:
    model_path = path[2:]
    role = Role.RNG if is_rng(model_path) else Role.AUXILIARY
    return StateKey(role, model_path)
  if path[0] == "opt_state":
    return _optimizer_key(leaf, optimizer)
  raise LayoutError(
    f"{ITEM}/{leaf.name}: not a leaf of MaxText's layout, which has "
    "params.params, opt_state, step and nnx_aux.model"
  )


def _optimizer_key(leaf: ItemLeaf, optimizer: OptimizerKind | None) -> StateKey:
  below = leaf.path.names[1:]
  member = _ADAM_MEMBER
  if optimizer == "adamw":
    member, below = below[0], below[1:]
  if below == ("count",) and member in (_ADAM_MEMBER, _SCHEDULE_MEMBER):
    first = member == _ADAM_MEMBER
    return StateKey(Role.COUNT if first else Role.SCHEDULE_COUNT)
  if (
    member == _ADAM_MEMBER
    and below[:1] in (("mu",), ("nu",))
    and below[1:2] == (_MOMENT_COLLECTION,)
    and below[2:]
  ):
    return StateKey(Role.MOMENT, below[2:], below[0])
  raise LayoutError(
    f"{ITEM}/{leaf.name}: not a leaf of the optimizer state that MaxText "
    f"writes for {optimizer}; found {dotted(leaf.path.names)}"
  )
