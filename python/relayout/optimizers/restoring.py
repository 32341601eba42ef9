"""Puts what is around an optimizer back; `wrappers` says around what."""

from typing import Any

from relayout.errors import LayoutError
from relayout.optimizers import counts, injected, leaves, nodes, structure
from relayout.optimizers.counts import shown
from relayout.optimizers.matching import fill
from relayout.optimizers.stripping import plain_structure
from relayout.optimizers.structure import INNER, Kind
from relayout.tree.key_path import KeyPath


def restore_wrappers(
  plain_state: Any, like: Any, *, num_updates: int | None = None
) -> Any:
  """Returns the state `like` with the values of a plain one.

  The result has exactly `like`'s structure.  Moments and counts come from
  `plain_state`, as they are.  `MultiSteps` begins anew: no micro-step since the
  last update, no gradients, and its `gradient_step` is the optimizer's count.
  `inject_hyperparams`, and the schedules in it, stand where the plain state's
  schedule does.  All else stays as `like` has it; so do hyperparameters: a
  schedule sets them before they are used, and a constant is that of the
  optimizer that runs on.

  Args:
    plain_state: As `strip_wrappers` returns it, or MaxText's: a list of
      `{count, mu, nu}`, None and `{count}`.
    like: State of the optimizer that is to go on, from its `init`.
    num_updates: How many updates were made; needed where the plain state
      does not count them, as that of `optax.sgd`.

  Raises:
    LayoutError: If a leaf is missing, superfluous, or of another shape, or
      nothing counts the updates.
  """
  return _Restorer(num_updates).restore(plain_state, like, ())


class _Restorer:
  """Fills the wrapped structure `like` from a plain state."""

  def __init__(self, num_updates: int | None) -> None:
    self._num_updates = num_updates

  def restore(self, plain: Any, like: Any, at: KeyPath) -> Any:
    match structure.kind_of(like):
      case Kind.MULTI_STEPS:
        return self._multi_steps(plain, like, at)
      case Kind.INJECT:
        return self._inject(plain, like, at)
      case Kind.CHAIN:
        return self._chain(plain, like, at)
      case Kind.HOLDER:
        return self._holder(plain, like, at)
    return fill(plain, like, at)

  def _multi_steps(self, plain: Any, like: Any, at: KeyPath) -> Any:
    updates = counts.updates_of(plain, self._num_updates, at)
    changed = {
      name: nodes.map_leaves(leaves.zeros, nodes.find(like, (name,)))
      for name in ("mini_step", "acc_grads")
    }
    counted = nodes.find(like, ("gradient_step",))
    changed["gradient_step"] = leaves.counter(counted, updates)
    return self._around(plain, like, at, Kind.MULTI_STEPS, changed)

  def _inject(self, plain: Any, like: Any, at: KeyPath) -> Any:
    inner = nodes.find(like, (INNER[Kind.INJECT],))
    position, plain = self._take_position(plain, inner, at)
    changed: dict[str, Any] = {
      name: nodes.map_leaves(
        lambda leaf: leaves.counter(leaf, position), nodes.find(like, (name,))
      )
      for name in ("count", "hyperparams_states")
      if name in (nodes.children(like) or {})
    }
    injected.check_schedules(like, at)
    return self._around(plain, like, at, Kind.INJECT, changed)

  def _take_position(
    self, plain: Any, inner: Any, at: KeyPath
  ) -> tuple[Any, Any]:
    """Returns the schedule's position, and `plain` as the optimizer has it."""
    shape = plain_structure(inner)
    free = list(structure.free_schedules(shape))
    if not free:
      own = [(*path, "count") for path in structure.own_schedules(shape)]
      if own:
        return counts.agreed(plain, own, at), plain
      return counts.updates_of(plain, self._num_updates, at), plain
    position = counts.agreed(plain, [(*path, "count") for path in free], at)
    for path in free:
      plain = structure.without_schedule(plain, path)
    return position, plain

  def _around(
    self,
    plain: Any,
    like: Any,
    at: KeyPath,
    kind: Kind,
    changed: dict[str, Any],
  ) -> Any:
    name = INNER[kind]
    if name in (nodes.children(like) or {}):
      inner = nodes.find(like, (name,))
      changed = changed | {name: self.restore(plain, inner, (*at, name))}
    elif not nodes.is_empty(plain):
      raise LayoutError(f"{shown(at)}: no place for the optimizer's state")
    return nodes.replace(like, changed)

  def _chain(self, plain: Any, like: Any, at: KeyPath) -> Any:
    part = structure.optimizer_of(like)
    if part.is_nested:
      [name] = part.names
      inner = nodes.find(like, (name,))
      return nodes.replace(
        like, {name: self.restore(plain, inner, (*at, name))}
      )
    first = int(part.names[0])
    wanted = {str(int(name) - first): name for name in part.names}
    found = nodes.children(plain) or {}
    for name, child in found.items():
      if name not in wanted and not nodes.is_empty(child):
        raise LayoutError(
          f"{shown((*at, name))}: a member with the state "
          f"{', '.join(nodes.children(child) or {})}, which the optimizer "
          "that it is for does not have"
        )
    changed = {
      name: self.restore(
        found.get(number), nodes.find(like, (name,)), (*at, name)
      )
      for number, name in wanted.items()
    }
    return nodes.replace(like, changed)

  def _holder(self, plain: Any, like: Any, at: KeyPath) -> Any:
    paths = list(structure.held(like))
    roots = {path[0] for path in paths}
    found = nodes.children(plain) or {}
    changed = {
      name: fill(found.get(name), child, (*at, name))
      for name, child in (nodes.children(like) or {}).items()
      if name not in roots
    }
    result = nodes.replace(like, changed)
    for path in paths:
      child = self.restore(
        nodes.find(plain, path), nodes.find(like, path), (*at, *path)
      )
      result = nodes.put(result, path, child)
    return result
