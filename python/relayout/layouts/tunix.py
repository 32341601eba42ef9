"""Tunix's layout: `nnx.state(model)` and the optimizer's, as they are.

A step holds `model_params` and, unless it is a weights-only save,
`optimizer_state`.  Every array's key path ends in `value`, the level of an
`nnx.Variable`.  DPO and RL wrap the model in an adapter whose level `base`
shows up at the root of the weights and of each accumulator.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from relayout.errors import LayoutError
from relayout.layouts import optimizer as optimizers
from relayout.layouts import wrappers
from relayout.layouts.layout import Extra, Layout, Naming, Place
from relayout.layouts.state import (
  Accumulation,
  Counter,
  Dropped,
  Role,
  State,
  StateKey,
  StoredLeaf,
)
from relayout.layouts.variables import is_rng, may_be_weight, non_weight
from relayout.metadata.item import Item
from relayout.metadata.step_metadata import (
  PYTREE_CHECKPOINT_HANDLER,
  PYTREE_HANDLER,
)
from relayout.tree.key_path import KeyPath, dotted

MODEL_ITEM = "model_params"
OPTIMIZER_ITEM = "optimizer_state"
ITEMS = (MODEL_ITEM, OPTIMIZER_ITEM)

_ADAPTER_LEVEL = "base"


def read_state(model: Item, optimizer: Item | None) -> State:
  """Reads the items of a Tunix step.

  Args:
    model: The item `model_params`.
    optimizer: The item `optimizer_state`, or None to read weights only.

  Raises:
    LayoutError: If a leaf does not fit the layout; names it.
  """
  leaves = _leaves(model)
  adapter = adapter_level(leaves)
  model_state, dropped = _model_leaves(leaves, adapter)
  state = State(
    leaves=model_state,
    optimizer=None,
    step=None,
    adapter=adapter,
    dropped=dropped,
  )
  return state if optimizer is None else with_optimizer(state, optimizer)


def place(key: StateKey, naming: Naming) -> Place | None:
  """Returns where Tunix keeps a leaf; None for a schedule that it has not."""
  if key.role in (Role.WEIGHT, Role.RNG, Role.AUXILIARY):
    return Place(MODEL_ITEM, wrappers.place_in_model(key, naming.adapter))
  if key.role is Role.SCHEDULE_COUNT and not _has_schedule(naming):
    return None
  path = wrappers.place_in_optimizer(
    key, naming.optimizer, naming.wrappers, naming.adapter
  )
  return Place(OPTIMIZER_ITEM, path)


def _has_schedule(naming: Naming) -> bool:
  if naming.wrappers.needs_learning_rate:
    return True
  return naming.has_schedule and naming.optimizer == "adamw"


def extras(state: State, naming: Naming) -> Iterator[Extra]:
  """Yields the step, the schedule's position, and what wrappers add."""
  if naming.optimizer is None or state.step is None:
    return
  yield _extra_counter(StateKey(Role.STEP), state.step, naming, "uint32")
  schedule = StateKey(Role.SCHEDULE_COUNT)
  if (
    schedule not in state.leaves
    and _has_schedule(naming)
    and naming.optimizer == "adamw"
  ):
    position = state.schedule_count or state.step
    yield _extra_counter(schedule, position, naming, "int32")
  trained = {key.path: None for key, _ in state.with_role(Role.MOMENT)}
  for leaf in wrappers.extra_leaves(
    naming.optimizer, naming.wrappers, naming.adapter, trained
  ):
    values = {
      wrappers.Value.ZERO: 0,
      wrappers.Value.UPDATES: state.step.value,
      wrappers.Value.LEARNING_RATE: 0.0,
    }
    yield Extra(
      Place(OPTIMIZER_ITEM, leaf.path),
      leaf.reason,
      leaf.dtype,
      values.get(leaf.value),
      zeros_like=leaf.like,
    )


def _extra_counter(
  key: StateKey, counter: Counter, naming: Naming, dtype: str
) -> Extra:
  found = place(key, naming)
  assert found is not None
  return Extra(
    found, counter.rule, dtype, counter.value, sources=counter.sources
  )


def _same_number(updates: int) -> int:
  """Directory N holds N updates."""
  return updates


def _read(items: Mapping[str, Item]) -> State:
  return read_state(items[MODEL_ITEM], items.get(OPTIMIZER_ITEM))


LAYOUT = Layout(
  name="tunix",
  items=ITEMS,
  handlers={2: PYTREE_CHECKPOINT_HANDLER, 3: PYTREE_HANDLER},
  read=_read,
  place=place,
  extras=extras,
  number=_same_number,
)


def _leaves(item: Item) -> dict[KeyPath, StoredLeaf]:
  """Returns the item's arrays by path, the variable's level removed."""
  result: dict[KeyPath, StoredLeaf] = {}
  for leaf in item.leaves:
    if leaf.spec is None:
      continue
    path = strip_variable_level(leaf.path.names)
    stored = StoredLeaf(item, leaf)
    if path in result:
      raise LayoutError(f"{stored.label}: also stored as {result[path].label}")
    result[path] = stored
  return result


def strip_variable_level(path: KeyPath) -> KeyPath:
  """Removes the level of an `nnx.Variable`, where it is the last key.

  Only the last: attention modules have a child called `value`.
  """
  if len(path) > 1 and path[-1] == wrappers.VARIABLE_LEVEL:
    return path[:-1]
  return path


def adapter_level(paths: Iterable[KeyPath]) -> str:
  """Returns the adapter level at the root of the weights, or ""."""
  roots = {path[0] for path in paths}
  return _ADAPTER_LEVEL if roots == {_ADAPTER_LEVEL} else ""


def _strip_adapter(path: KeyPath, adapter: str, stored: StoredLeaf) -> KeyPath:
  """Removes the adapter level from the root of a model path."""
  if not adapter:
    return path
  if path[0] != adapter or len(path) == 1:
    raise LayoutError(
      f"{stored.label}: the weights stand below the adapter level "
      f"{adapter!r}, this leaf does not"
    )
  return path[1:]


def _model_leaves(
  leaves: Mapping[KeyPath, StoredLeaf], adapter: str
) -> tuple[dict[StateKey, StoredLeaf], tuple[Dropped, ...]]:
  result: dict[StateKey, StoredLeaf] = {}
  dropped = []
  for full_path, stored in leaves.items():
    path = _strip_adapter(full_path, adapter, stored)
    role = _role(path, stored)
    if role is None:
      assert stored.leaf.spec is not None
      dropped.append(
        Dropped(
          stored,
          f"unknown kind: {stored.leaf.spec.dtype} is no data type of a "
          "weight, and no table says what this leaf is",
        )
      )
    else:
      result[StateKey(role, path)] = stored
  return result, tuple(dropped)


def _role(path: KeyPath, stored: StoredLeaf) -> Role | None:
  """Returns what a leaf of the model is; None if nothing says so."""
  assert stored.leaf.spec is not None
  if is_rng(path):
    return Role.RNG
  if non_weight(path):
    return Role.AUXILIARY
  return Role.WEIGHT if may_be_weight(path, stored.leaf.spec) else None


def with_optimizer(state: State, item: Item) -> State:
  """Returns `state`, which has weights, with an optimizer's leaves added.

  Args:
    state: What the model holds.
    item: The item `optimizer_state`.

  Raises:
    LayoutError: If a leaf does not fit the layout or the weights; names it.
  """
  leaves = _leaves(item)
  step = leaves.pop(("step",), None)
  nested = optimizers.nest(_below_root(leaves))
  if not nested:
    return dataclasses.replace(state, step=_plain_step(step))
  found = optimizers.unwrap(nested)
  counted = StateKey(Role.COUNT)
  new: dict[StateKey, StoredLeaf] = {counted: found.count}
  if found.schedule_count:
    new[StateKey(Role.SCHEDULE_COUNT)] = found.schedule_count
  new |= _moments(found, state)
  return dataclasses.replace(
    state,
    leaves={**state.leaves, **new},
    optimizer=found.kind,
    step=_step(step, found),
    schedule_count=_schedule_count(found),
    accumulation=_accumulation(found),
    wrappers=found.wrappers,
    dropped=(*state.dropped, *found.dropped, *_unused_count(found)),
  )


def _accumulation(found: optimizers.Unwrapped) -> Accumulation | None:
  if found.mini_step is None:
    return None
  return Accumulation(found.mini_step.read_int())


def _unused_count(found: optimizers.Unwrapped) -> Iterator[Dropped]:
  """Yields the count of inject_hyperparams where nothing is taken from it."""
  own_schedule = found.schedule_count is not None or found.kind != "adamw"
  if found.injected_count is not None and own_schedule:
    yield Dropped(
      found.injected_count,
      "count of inject_hyperparams; the optimizer inside keeps its own",
    )


def _below_root(
  leaves: Mapping[KeyPath, StoredLeaf],
) -> dict[KeyPath, StoredLeaf]:
  """Returns the leaves below `opt_state`, with that level removed."""
  result = {}
  for path, stored in leaves.items():
    if path[0] != "opt_state" or len(path) == 1:
      raise LayoutError(
        f"{stored.label}: expected `step` and leaves below `opt_state`"
      )
    result[path[1:]] = stored
  return result


def _moments(
  found: optimizers.Unwrapped, state: State
) -> dict[StateKey, StoredLeaf]:
  weights = {
    key.path: leaf
    for key, leaf in state.leaves.items()
    if key.role in (Role.WEIGHT, Role.AUXILIARY)
  }
  result = {}
  for slot, tree in found.moments.items():
    for full_path, stored in optimizers.flatten(tree):
      path = _strip_adapter(full_path, state.adapter, stored)
      _check_moment(path, stored, weights)
      result[StateKey(Role.MOMENT, path, slot)] = stored
  _check_complete(result)
  return result


def _check_complete(moments: Mapping[StateKey, StoredLeaf]) -> None:
  """Checks that a weight with one moment has the other."""
  for key, stored in moments.items():
    for slot in optimizers.SLOTS:
      if dataclasses.replace(key, slot=slot) not in moments:
        raise LayoutError(
          f"{stored.label}: there is no {slot} of {dotted(key.path)}; the "
          "optimizer state is incomplete. To convert the weights alone, pass "
          "--params_only"
        )


def _check_moment(
  path: KeyPath, moment: StoredLeaf, weights: Mapping[KeyPath, StoredLeaf]
) -> None:
  """Checks that a moment belongs to a weight of its shape."""
  weight = weights.get(path)
  if weight is None:
    raise LayoutError(
      f"{moment.label}: no weight is called {dotted(path)}. Are the two items "
      "of one step? To convert the weights alone, pass --params_only"
    )
  assert weight.leaf.spec is not None
  assert moment.leaf.spec is not None
  if weight.leaf.spec.shape != moment.leaf.spec.shape:
    raise LayoutError(
      f"{moment.label}: shape {moment.leaf.spec.shape}, but the weight "
      f"{weight.label} has {weight.leaf.spec.shape}. To convert the weights "
      "alone, pass --params_only"
    )


def _plain_step(step: StoredLeaf | None) -> Counter | None:
  if step is None:
    return None
  return Counter(step.read_int(), "the trainer's step", (step,))


def _step(
  step: StoredLeaf | None, found: optimizers.Unwrapped
) -> Counter | None:
  """Returns the number of updates; Tunix's `step` counts micro-steps."""
  if found.gradient_step is None:
    return _plain_step(step)
  sources = (found.gradient_step, *((step,) if step else ()))
  return Counter(
    found.gradient_step.read_int(),
    "gradient_step of MultiSteps: updates, not micro-steps",
    sources,
  )


def _schedule_count(found: optimizers.Unwrapped) -> Counter | None:
  """Returns the schedule's position where the optimizer keeps none itself."""
  if found.schedule_count is not None or found.kind != "adamw":
    return None
  if found.injected_count is not None:
    return Counter(
      found.injected_count.read_int(),
      "count of inject_hyperparams' schedule",
      (found.injected_count,),
    )
  return Counter(
    found.count.read_int(),
    "count of the optimizer: it keeps no schedule of its own",
    (found.count,),
  )
