"""Finds the optimizer inside the wrappers that trainers put around it.

An optax state is a tree of named tuples and tuples.  Tunix stores their field
names and digits; members without arrays are simply absent.  `unwrap` walks
from the root through the wrappers it knows, in any order, and refuses a tree
that it does not recognise: a moment that ends in the wrong place would be
lost without a word when MaxText loads it.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from relayout.errors import LayoutError
from relayout.layouts.state import Dropped, OptimizerKind, StoredLeaf
from relayout.tree.key_path import KeyPath, dotted

type Node = Mapping[str, "Node"] | StoredLeaf

SLOTS = ("mu", "nu")

_ADAM = frozenset({"count", "mu", "nu"})
_MULTI_STEPS = frozenset(
  {"mini_step", "gradient_step", "inner_opt_state", "acc_grads"}
)
_INJECT = frozenset({"count", "hyperparams", "inner_state"})


@dataclasses.dataclass(frozen=True, slots=True)
class Unwrapped:
  """An optimizer with its wrappers taken off.

  Attributes:
    kind: Which optimizer it is.
    count: Leaf that counts the optimizer's updates.
    moments: For each slot, the subtree of accumulators.
    schedule_count: Leaf with the position of the learning-rate schedule, where
      the optimizer keeps one of its own; else None.
    injected_count: What counts the updates of `inject_hyperparams`: the
      schedule of the learning rate, if it has one; or None.
    gradient_step: Update count of `MultiSteps`, or None.
    mini_step: Micro-step count of `MultiSteps`, or None.
    wrappers: Names of the wrappers, outermost first.
    dropped: Leaves of the wrappers, each with the reason to leave it out.
  """

  kind: OptimizerKind
  count: StoredLeaf
  moments: Mapping[str, Node]
  schedule_count: StoredLeaf | None = None
  injected_count: StoredLeaf | None = None
  gradient_step: StoredLeaf | None = None
  mini_step: StoredLeaf | None = None
  wrappers: tuple[str, ...] = ()
  dropped: tuple[Dropped, ...] = ()


def nest(leaves: Mapping[KeyPath, StoredLeaf]) -> Node:
  """Returns `leaves` as nested dicts.

  Raises:
    LayoutError: If one leaf lies below another.
  """
  root: dict[str, Node] = {}
  for path, leaf in leaves.items():
    node = root
    for name in path[:-1]:
      child = node.setdefault(name, {})
      if not isinstance(child, dict):
        raise LayoutError(f"{leaf.label}: lies below another leaf")
      node = child
    if path[-1] in node:
      raise LayoutError(f"{leaf.label}: other leaves lie below it")
    node[path[-1]] = leaf
  return root


def flatten(
  node: Node, prefix: KeyPath = ()
) -> Iterator[tuple[KeyPath, StoredLeaf]]:
  """Yields the leaves below `node` with their paths."""
  if isinstance(node, StoredLeaf):
    yield prefix, node
    return
  for name, child in node.items():
    yield from flatten(child, (*prefix, name))


def unwrap(root: Node) -> Unwrapped:
  """Returns the optimizer inside `root`, the tree below `opt_state`.

  Raises:
    LayoutError: If the tree is not AdamW or adam_pax inside clipping chains,
      `MultiSteps` and `inject_hyperparams`; names what was found.
  """
  return _unwrap(root, ("opt_state",))


def _unwrap(node: Node, at: KeyPath) -> Unwrapped:
  if isinstance(node, StoredLeaf):
    raise _unknown(node, at)
  names = frozenset(node)
  for wrapper, fields, handle in _WRAPPERS:
    if fields <= names:
      found = handle(node, at)
      return dataclasses.replace(found, wrappers=(wrapper, *found.wrappers))
  if names == _ADAM:
    return _adam(node, at, "adam_pax")
  if names and all(name.isdigit() for name in names):
    return _chain(node, at)
  raise _unknown(node, at)


def _chain(node: Mapping[str, Node], at: KeyPath) -> Unwrapped:
  """Handles a chain: AdamW, or one optimizer beside stateless members."""
  first = node.get("0")
  if isinstance(first, Mapping) and frozenset(first) == _ADAM:
    return _adamw(node, first, at)
  if len(node) != 1:
    raise _unknown(node, at)
  [(name, member)] = node.items()
  found = _unwrap(member, (*at, name))
  return dataclasses.replace(found, wrappers=("chain", *found.wrappers))


def _adamw(
  node: Mapping[str, Node], adam: Mapping[str, Node], at: KeyPath
) -> Unwrapped:
  """Handles optax.adamw: adam, weight decay (stateless), learning rate."""
  if not frozenset(node) <= {"0", "2"}:
    raise _unknown(node, at)
  schedule = node.get("2")
  if schedule is None:
    return _adam(adam, (*at, "0"), "adamw")
  if not isinstance(schedule, Mapping) or frozenset(schedule) != {"count"}:
    raise _unknown(schedule, (*at, "2"))
  return dataclasses.replace(
    _adam(adam, (*at, "0"), "adamw"),
    schedule_count=_leaf(schedule, "count", at),
  )


def _adam(
  node: Mapping[str, Node], at: KeyPath, kind: OptimizerKind
) -> Unwrapped:
  return Unwrapped(
    kind=kind,
    count=_leaf(node, "count", at),
    moments={slot: node[slot] for slot in SLOTS},
  )


def _multi_steps(node: Mapping[str, Node], at: KeyPath) -> Unwrapped:
  found = _unwrap(node["inner_opt_state"], (*at, "inner_opt_state"))
  reasons = {
    "mini_step": "micro-steps since the last update; MaxText keeps none",
    "acc_grads": "gradients of an update that is complete (mini_step 0)",
    "skip_state": "state of MultiSteps' skip rule; MaxText keeps none",
  }
  if frozenset(node) - _MULTI_STEPS - frozenset(reasons):
    raise _unknown(node, at)
  if found.gradient_step is not None:
    raise _unknown(node["inner_opt_state"], (*at, "inner_opt_state"))
  dropped = tuple(
    Dropped(leaf, reason)
    for name, reason in reasons.items()
    if name in node
    for _, leaf in flatten(node[name])
  )
  return dataclasses.replace(
    found,
    gradient_step=_leaf(node, "gradient_step", at),
    mini_step=_leaf(node, "mini_step", at),
    dropped=dropped + found.dropped,
  )


def _inject(node: Mapping[str, Node], at: KeyPath) -> Unwrapped:
  found = _unwrap(node["inner_state"], (*at, "inner_state"))
  if frozenset(node) - _INJECT - {"hyperparams_states"}:
    raise _unknown(node, at)
  if found.injected_count is not None:
    raise _unknown(node["inner_state"], (*at, "inner_state"))
  position = _position(node) or _leaf(node, "count", at)
  dropped = tuple(
    Dropped(leaf, "hyperparameter that inject_hyperparams sets at every update")
    for name in ("count", "hyperparams", "hyperparams_states")
    if name in node
    for _, leaf in flatten(node[name])
    if leaf is not position
  )
  return dataclasses.replace(
    found, injected_count=position, dropped=dropped + found.dropped
  )


def _position(node: Mapping[str, Node]) -> StoredLeaf | None:
  """Returns where the injected learning rate's schedule stands, or None."""
  for name in ("hyperparams_states", "learning_rate", "count"):
    child = node.get(name)
    if isinstance(child, StoredLeaf):
      return child
    if child is None:
      return None
    node = child
  return None


type _Handler = Callable[[Mapping[str, Node], KeyPath], Unwrapped]

_WRAPPERS: tuple[tuple[str, frozenset[str], _Handler], ...] = (
  ("MultiSteps", _MULTI_STEPS, _multi_steps),
  ("inject_hyperparams", _INJECT, _inject),
)


def _leaf(node: Mapping[str, Node], name: str, at: KeyPath) -> StoredLeaf:
  child = node[name]
  if not isinstance(child, StoredLeaf):
    raise _unknown(child, (*at, name))
  return child


def _unknown(node: Node, at: KeyPath) -> LayoutError:
  if isinstance(node, StoredLeaf):
    found = f"a single array of shape {node.leaf.spec and node.leaf.spec.shape}"
  else:
    found = "the keys " + ", ".join(sorted(node)[:12])
  return LayoutError(
    f"optimizer state at {dotted(at)}: found {found}, which is neither AdamW "
    "nor adam_pax inside clipping, MultiSteps or inject_hyperparams. To "
    "convert the weights alone, pass --params_only"
  )
