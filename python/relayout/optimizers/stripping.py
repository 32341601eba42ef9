"""Takes off what is around an optimizer; `wrappers` says what is left."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from relayout.errors import LayoutError, OptionError
from relayout.optimizers import counts, injected, leaves, nodes, structure
from relayout.optimizers.counts import shown
from relayout.optimizers.structure import INNER, Kind
from relayout.tree.key_path import KeyPath

_CLIP = "chain"


@dataclasses.dataclass(frozen=True)
class Removed:
  """What a plain state has no place for.

  Attributes:
    wrappers: Names of the wrappers, outermost first: `MultiSteps`,
      `inject_hyperparams`, and `chain` for clipping.
    leaves: Each leaf that is not in the plain state, by its path in the
      wrapped one.
  """

  wrappers: tuple[str, ...]
  leaves: Mapping[KeyPath, Any]


@dataclasses.dataclass(frozen=True)
class Stripped:
  """A plain state, and what was taken off it.

  Attributes:
    state: The optimizer's own state; its leaves are those that were given.
    removed: The rest.
  """

  state: Any
  removed: Removed


def strip_wrappers(
  opt_state: Any, *, drop_accumulated: bool = False
) -> Stripped:
  """Returns the state of the optimizer inside its wrappers.

  Args:
    opt_state: State of an optax optimizer: live, or nested dicts or
      `nnx.State` of its names, where members without arrays are absent.
      Leaves are arrays or `nnx` variables; where they are abstract, counters
      are not compared.
    drop_accumulated: Leave out the gradients of micro-steps since the last
      update, too.

  Raises:
    OptionError: If gradients of an unfinished update would be lost, and
      `drop_accumulated` does not say that they may.
    LayoutError: If a schedule has a position or a state that the plain state
      has no place for.
  """
  stripper = _Stripper(drop_accumulated)
  state = stripper.strip(opt_state, ())
  removed = Removed(tuple(stripper.wrappers), stripper.removed)
  return Stripped(state, removed)


def plain_structure(wrapped: Any) -> Any:
  """Returns the plain state of `wrapped`, whatever its values are."""
  return _Stripper(drop_accumulated=True, check=False).strip(wrapped, ())


class _Stripper:
  """Takes wrappers off, and keeps account of them."""

  def __init__(self, drop_accumulated: bool, *, check: bool = True) -> None:
    self._drop_accumulated = drop_accumulated
    self._check = check
    self.wrappers: list[str] = []
    self.removed: dict[KeyPath, Any] = {}

  def strip(self, node: Any, at: KeyPath) -> Any:
    match structure.kind_of(node):
      case Kind.MULTI_STEPS:
        return self._multi_steps(node, at)
      case Kind.INJECT:
        return self._inject(node, at)
      case Kind.CHAIN:
        return self._chain(node, at)
      case Kind.HOLDER:
        for path in structure.held(node):
          child = self.strip(nodes.find(node, path), (*at, *path))
          node = nodes.put(node, path, child)
    return node

  def _multi_steps(self, node: Any, at: KeyPath) -> Any:
    self._enter(Kind.MULTI_STEPS, at)
    mini_step = leaves.known_int(nodes.find(node, ("mini_step",)))
    if self._check and mini_step and not self._drop_accumulated:
      raise OptionError(
        f"{shown((*at, 'mini_step'))} is {mini_step}: the gradients of "
        f"{mini_step} micro-steps since the last update would be lost. Strip "
        "after an update, or pass drop_accumulated=True"
      )
    self._remove_around(node, at, INNER[Kind.MULTI_STEPS], kept=())
    return self._inner(node, at, Kind.MULTI_STEPS)

  def _inject(self, node: Any, at: KeyPath) -> Any:
    self._enter(Kind.INJECT, at)
    injected.check_schedules(node, at)
    source = injected.position_path(node)
    position = nodes.find(node, source)
    inner = self._inner(node, at, Kind.INJECT)
    free = list(structure.free_schedules(inner))
    if self._check and not free:
      counts.check_position(inner, position, (*at, *source))
    kept = [(*at, *source)] if free else []
    self._remove_around(node, at, INNER[Kind.INJECT], kept)
    for number, path in enumerate(free):
      count = leaves.counter(position, position) if number else position
      inner = structure.with_schedule(inner, path, count)
    return inner

  def _chain(self, node: Any, at: KeyPath) -> Any:
    part = structure.optimizer_of(node)
    if part.is_nested:
      self.wrappers.append(_CLIP)
    members = {
      name: self.strip(nodes.find(node, (name,)), (*at, name))
      for name in part.names
    }
    if part.is_nested:
      return members[part.names[0]]
    return structure.chain_of(node, members)

  def _inner(self, node: Any, at: KeyPath, kind: Kind) -> Any:
    name = INNER[kind]
    return self.strip(nodes.find(node, (name,)), (*at, name))

  def _enter(self, kind: Kind, at: KeyPath) -> None:
    if kind.value in self.wrappers:
      raise LayoutError(
        f"{shown(at)}: {kind.value} inside {kind.value}; there is no telling "
        "what its counts count"
      )
    self.wrappers.append(kind.value)

  def _remove_around(
    self, node: Any, at: KeyPath, inner: str, kept: Collection[KeyPath]
  ) -> None:
    for name, child in (nodes.children(node) or {}).items():
      if name != inner:
        found = nodes.leaves(child, (*at, name))
        self.removed.update((p, leaf) for p, leaf in found if p not in kept)
