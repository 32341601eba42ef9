"""Finds for each leaf of the target the source leaves that it must equal."""

import dataclasses
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

from relayout.layouts import stacking
from relayout.layouts.state import Role, State, StateKey, StoredLeaf
from relayout.tree.key_path import KeyPath

_DERIVED = (Role.STEP, Role.SCHEDULE_COUNT)


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
  """A target leaf, and what it must be equal to.

  Attributes:
    key: What the leaf is.
    sources: The leaf itself, or the layers that it stacks, layer 0 first.
    target: The target leaf.
    layers: Numbers of the layers that it stacks; None if it stacks none.
    num_layers: How many layers the whole stack of the model has.
  """

  key: StateKey
  sources: tuple[StoredLeaf, ...]
  target: StoredLeaf
  layers: tuple[int, ...] | None = None
  num_layers: int = 0

  @property
  def missing_layers(self) -> tuple[int, ...]:
    """Layers of the stack that lack this leaf."""
    if self.layers is None:
      return ()
    return tuple(i for i in range(self.num_layers) if i not in self.layers)


@dataclasses.dataclass(frozen=True, slots=True)
class Matched:
  """Which leaves belong together.

  Attributes:
    comparisons: Target leaves with the source's.
    counters: Target leaves that may follow from the source by a rule.
    extra: Target leaves that no source leaf explains.
    rest: Source leaves that no target leaf holds.
  """

  comparisons: tuple[Comparison, ...]
  counters: Mapping[StateKey, StoredLeaf]
  extra: tuple[tuple[StateKey, StoredLeaf], ...]
  rest: Mapping[StateKey, StoredLeaf]


type _Stacks = Mapping[StateKey, Mapping[int, StateKey]]
"""For each leaf of a scanned model, the leaf of each layer that it stacks."""


def match(source: State, target: State) -> Matched:
  """Matches leaves by what they are, and layers with stacks of them."""
  stacks = _stacks(source.leaves)
  lengths = _lengths(stacks)
  comparisons: list[Comparison] = []
  counters: dict[StateKey, StoredLeaf] = {}
  extra = []
  rest = dict(source.leaves)
  for key, stored in target.leaves.items():
    direct, stack = _same(key, source.leaves), _same(key, stacks)
    if direct is not None:
      comparisons.append(Comparison(key, (source.leaves[direct],), stored))
      rest.pop(direct, None)
    elif stack is not None:
      layers = tuple(sorted(stacks[stack]))
      keys = [stacks[stack][layer] for layer in layers]
      sources = tuple(source.leaves[k] for k in keys)
      length = lengths[stack.path[:2]]
      comparisons.append(Comparison(key, sources, stored, layers, length))
      for k in keys:
        rest.pop(k, None)
    elif key.role in _DERIVED:
      counters[key] = stored
    else:
      extra.append((key, stored))
  return Matched(tuple(comparisons), counters, tuple(extra), rest)


def _same(key: StateKey, keys: Container[StateKey]) -> StateKey | None:
  """Returns which of `keys` is the same leaf as the target's `key`, or None.

  MaxText reads variables that are no weights from the collection `params`,
  too, so they may stand among the weights there.
  """
  roles = [key.role] + [Role.AUXILIARY] * (key.role is Role.WEIGHT)
  for role in roles:
    candidate = dataclasses.replace(key, role=role)
    if candidate in keys:
      return candidate
  return None


def _stacks(keys: Iterable[StateKey]) -> _Stacks:
  result: dict[StateKey, dict[int, StateKey]] = defaultdict(dict)
  for key in keys:
    layer = stacking.split_layer(key.path) if key.path else None
    if layer is not None and key.role is not Role.RNG:
      stacked = dataclasses.replace(key, path=layer.template)
      result[stacked][layer.index] = key
  return dict(result)


def _lengths(stacks: _Stacks) -> Mapping[KeyPath, int]:
  """Returns the number of layers of each stack of the model."""
  lengths: dict[KeyPath, int] = defaultdict(int)
  for key, layers in stacks.items():
    name = key.path[:2]
    lengths[name] = max(lengths[name], 1 + max(layers))
  return lengths
