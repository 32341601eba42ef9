"""Which leaves of a model are not weights.

A checkpoint records no variable types, so names decide, from tables alone.
"""

import dataclasses

from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import KeyPath

_RNG_LEAVES = frozenset({"key", "count"})
_RNG_MODULES = frozenset({"rngs", "to_nnx__rngs"})

THREEFRY_WIDTH = 2
UNSAFE_RBG_WIDTH = 4
"""Words in a raw key of each implementation (`jax.random.key_data`)."""


@dataclasses.dataclass(frozen=True, slots=True)
class NonWeight:
  """Leaves that a family keeps in a variable that is no `nnx.Param`.

  Attributes:
    family: MaxText model names that have it, for reports.
    suffix: Last names of the leaf's model path.
    variable: Name of the variable type in MaxText.
  """

  family: str
  suffix: KeyPath
  variable: str


# From the released MaxText (0.2.5): `layers/moe.py`, GateLogit and RoutedMoE.
NON_WEIGHTS = (
  NonWeight(
    "deepseek3, kimi-k2",
    ("DeepSeekMoeBlock_0", "MoeBlock_0", "gate", "bias"),
    "MoEBiasVar",
  ),
  NonWeight("deepseek4", ("mlp", "MoeBlock_0", "gate", "bias"), "MoEBiasVar"),
  NonWeight("deepseek4", ("MoeBlock_0", "tid2eid"), "Tid2EidVar"),
)


def is_rng(path: KeyPath) -> bool:
  """Tells whether `path` is a key or a count of an `nnx.Rngs` stream."""
  if path[-1] not in _RNG_LEAVES:
    return False
  return any(name in _RNG_MODULES for name in path[:-1])


def non_weight(path: KeyPath) -> NonWeight | None:
  """Returns the table's entry for `path`, or None for a weight."""
  for entry in NON_WEIGHTS:
    if path[-len(entry.suffix) :] == entry.suffix:
      return entry
  return None


def may_be_weight(path: KeyPath, spec: ArraySpec) -> bool:
  """Tells whether the data type is one that weights have.

  Integers occur in weights only as quantized values, which flax and qwix keep
  below a level `array`.
  """
  floating = spec.dtype.startswith(("float", "bfloat"))
  return floating or "array" in path[:-1]
