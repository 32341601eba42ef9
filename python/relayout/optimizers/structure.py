"""What the containers of an optimizer state are, told from their names.

A state may be live, of optax's named tuples, or nested dicts of the same
names, as `nnx.state` and checkpoints have it; there, members without arrays
are absent.
"""

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any

import optax

from relayout.optimizers import nodes
from relayout.tree.key_path import KeyPath


class Kind(enum.Enum):
  """What a container of an optimizer state is."""

  MULTI_STEPS = "MultiSteps"
  INJECT = "inject_hyperparams"
  CHAIN = "chain"
  HOLDER = "holder"
  """Holds other states, and belongs to the optimizer: masks, for example."""
  OTHER = "other"
  """A state with no other inside, or none at all."""


INNER = {Kind.MULTI_STEPS: "inner_opt_state", Kind.INJECT: "inner_state"}
"""What a wrapper calls the state in it."""

_MULTI_STEPS = frozenset({"mini_step", "gradient_step", "acc_grads"})
_INJECT = frozenset({"count", "hyperparams"})
_HELD = ("inner_state", "inner_opt_state")
_HELD_BY_LABEL = "inner_states"
_ADAM = frozenset({"count", "mu", "nu"})
_SCHEDULE = frozenset({"count"})
_SCHEDULE_OF_ADAMW = "2"


def kind_of(node: Any) -> Kind:
  """Returns what `node` is."""
  members = nodes.children(node)
  if not members:
    return Kind.OTHER
  names = frozenset(members)
  if names >= _MULTI_STEPS:
    return Kind.MULTI_STEPS
  if names >= _INJECT:
    return Kind.INJECT
  if _is_sequence(node) or _is_numbered(node, names):
    return Kind.CHAIN
  if any(True for _ in held(node)):
    return Kind.HOLDER
  return Kind.OTHER


def held(node: Any) -> Iterator[KeyPath]:
  """Yields where a holder has the states in it."""
  members = nodes.children(node) or {}
  yield from ((name,) for name in _HELD if name in members)
  for label in nodes.children(members.get(_HELD_BY_LABEL)) or {}:
    yield _HELD_BY_LABEL, label


def is_schedule(node: Any) -> bool:
  """Tells whether `node` is the position of a learning-rate schedule."""
  return frozenset(nodes.children(node) or {}) == _SCHEDULE


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
  """The members of a chain that are its optimizer.

  Attributes:
    names: Of the members, in order.
    is_nested: Whether it is one member, that goes without the chain.
  """

  names: tuple[str, ...]
  is_nested: bool


def optimizer_of(chain: Any) -> Part:
  """Tells a chain's optimizer from the clipping around it.

  Clipping keeps no state.  What is left of a chain that has but one member
  with a state inside, another chain or a wrapper, is that member; else
  members without state at the front are left out, as for
  `chain(clip, scale_by_adam, scale)`.
  """
  members = nodes.children(chain) or {}
  names = sorted(members, key=int)
  rest = [name for name in names if not _is_stateless(members[name])]
  if len(rest) == 1 and kind_of(members[rest[0]]) in _NESTED:
    return Part((rest[0],), is_nested=True)
  if not rest or is_schedule(members[rest[0]]):
    return Part(tuple(names), is_nested=False)
  kept = tuple(name for name in names if int(name) >= int(rest[0]))
  is_cut = int(rest[0]) > 0
  return Part(kept, is_nested=is_cut and len(kept) == 1)


def chain_of(chain: Any, members: Mapping[str, Any]) -> Any:
  """Returns a chain like `chain` of other members, numbered anew.

  Args:
    chain: Gives the type.
    members: In order; gaps between their numbers stay.
  """
  if not isinstance(chain, Mapping):
    return type(chain)(members.values())
  first = min(map(int, members), default=0)
  return nodes.mapping_like(
    chain, {str(int(name) - first): child for name, child in members.items()}
  )


def own_schedules(node: Any) -> Iterator[KeyPath]:
  """Yields where a plain state keeps positions of schedules."""
  for path in _last_members(node):
    if is_schedule(nodes.find(node, path)):
      yield path


def free_schedules(node: Any) -> Iterator[KeyPath]:
  """Yields where a plain state would keep them, and has none."""
  for path in _last_members(node):
    if nodes.is_empty(nodes.find(node, path)):
      yield path


def with_schedule(node: Any, path: KeyPath, count: Any) -> Any:
  """Returns a plain state with the position of a schedule put in."""

  def put(chain: Any) -> Any:
    if isinstance(chain, Mapping):
      new = {"count": count}
      return nodes.mapping_like(chain, _members(chain) | {path[-1]: new})
    state = optax.ScaleByScheduleState(count=count)
    return nodes.replace(chain, {path[-1]: state})

  return nodes.update(node, path[:-1], put)


def without_schedule(node: Any, path: KeyPath) -> Any:
  """Returns a plain state with the position of a schedule taken out."""

  def take(chain: Any) -> Any:
    members = _members(chain)
    if isinstance(chain, Mapping):
      del members[path[-1]]
      return nodes.mapping_like(chain, members)
    return nodes.replace(chain, {path[-1]: optax.EmptyState()})

  return nodes.update(node, path[:-1], take)


def update_counts(node: Any, at: KeyPath = ()) -> Iterator[KeyPath]:
  """Yields where a plain state counts updates, besides in schedules."""
  kind = kind_of(node)
  for name, child in _members(node).items():
    if kind is Kind.CHAIN:
      yield from update_counts(child, (*at, name))
    elif kind is Kind.OTHER and name == "count" and not is_schedule(node):
      yield (*at, name)
  if kind is Kind.HOLDER:
    for path in held(node):
      yield from update_counts(nodes.find(node, path), (*at, *path))


_NESTED = (Kind.CHAIN, Kind.MULTI_STEPS, Kind.INJECT)


def _last_members(node: Any, at: KeyPath = ()) -> Iterator[KeyPath]:
  """Yields where the optimizers in `node` have their learning rate's member."""
  kind = kind_of(node)
  if kind is Kind.CHAIN:
    name = _learning_rate_member(node)
    last = nodes.find(node, (name,))
    if nodes.is_empty(last) or is_schedule(last):
      yield (*at, name)
      return
    for name, child in _members(node).items():
      yield from _last_members(child, (*at, name))
  elif kind is Kind.HOLDER:
    for path in held(node):
      yield from _last_members(nodes.find(node, path), (*at, *path))


def _learning_rate_member(chain: Any) -> str:
  """Returns the last member of a chain; it may be absent from a mapping."""
  members = _members(chain)
  last = max(members, key=int)
  if not isinstance(chain, Mapping) or is_schedule(members[last]):
    return last
  if last == "0" and frozenset(_members(members[last])) >= _ADAM:
    return _SCHEDULE_OF_ADAMW
  return str(int(last) + 1) if _is_plain_state(members[last]) else last


def _is_plain_state(node: Any) -> bool:
  return kind_of(node) is Kind.OTHER


def _members(node: Any) -> dict[str, Any]:
  return nodes.children(node) or {}


def _is_stateless(node: Any) -> bool:
  return kind_of(node) is Kind.OTHER and nodes.is_empty(node)


def _is_sequence(node: Any) -> bool:
  return isinstance(node, tuple | list) and not hasattr(node, "_fields")


def _is_numbered(node: Any, names: frozenset[str]) -> bool:
  return isinstance(node, Mapping) and all(name.isdecimal() for name in names)
