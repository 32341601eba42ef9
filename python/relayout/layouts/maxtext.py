"""MaxText's layout: one item `items` with params, opt_state, step, nnx_aux.

The released MaxText 0.2.5 writes it in `common/train_state_nnx.py`: weights in
the collection `params`, AdamW as a list whose stateless member is None, the
moments below `params` too, and what else the model keeps under `nnx_aux`.
"""

from collections.abc import Iterator, Mapping

from relayout.errors import LayoutError
from relayout.layouts.layout import Extra, Layout, Naming, Place
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
COUNT_DTYPE = "int32"

_WEIGHTS = ("params", "params")
_AUXILIARY = ("nnx_aux", "model")
_MOMENT_COLLECTION = "params"

_ADAM_MEMBER = "0"
_SCHEDULE_MEMBER = "2"
_STATELESS_MEMBER = TypedPath(
  ("opt_state", "1"), (KeyKind.DICT, KeyKind.SEQUENCE)
)
"""Weight decay, which keeps no state: a None leaf of AdamW's list."""


def place(key: StateKey, naming: Naming) -> Place:
  """Returns where MaxText keeps a leaf of the state.

  What is no weight goes to the weights when there is nothing else: MaxText's
  loader of weights alone looks for it there and nowhere else.
  """
  return Place(ITEM, _path(key, naming.optimizer))


def _path(key: StateKey, optimizer: OptimizerKind | None) -> TypedPath:
  match key.role:
    case Role.WEIGHT:
      return TypedPath.of_dicts((*_WEIGHTS, *key.path))
    case Role.AUXILIARY if optimizer is None:
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


def extras(state: State, naming: Naming) -> Iterator[Extra]:
  """Yields the step, the schedule's position and the None leaf of AdamW."""
  for role, counter in (
    (Role.STEP, state.step),
    (Role.SCHEDULE_COUNT, state.schedule_count),
  ):
    if counter is not None:
      yield Extra(
        place(StateKey(role), naming),
        counter.rule,
        COUNT_DTYPE,
        counter.value,
        sources=counter.sources,
      )
  if naming.optimizer == "adamw":
    yield Extra(
      Place(ITEM, _STATELESS_MEMBER), "AdamW's member without state is None"
    )


def _number(updates: int) -> int:
  """Directory N holds N + 1 updates; 0 stays 0."""
  return max(updates - 1, 0)


def _read(items: Mapping[str, Item]) -> State:
  return read_state(items[ITEM])


LAYOUT = Layout(
  name="maxtext",
  items=(ITEM,),
  handlers={2: PYTREE_HANDLER, 3: PYTREE_HANDLER},
  read=_read,
  place=place,
  extras=extras,
  number=_number,
)


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
  step = leaves.pop(StateKey(Role.STEP), None)
  return State(leaves=leaves, optimizer=optimizer, step=_counter(step))


def _optimizer_kind(item: Item) -> OptimizerKind | None:
  paths = [leaf.path.names for leaf in item.leaves]
  members = {path[1] for path in paths if path[0] == "opt_state" and path[1:]}
  if not members:
    return None
  return "adamw" if _ADAM_MEMBER in members else "adam_pax"


def _counter(stored: StoredLeaf | None) -> Counter | None:
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
