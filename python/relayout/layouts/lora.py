"""LoRA and quantized leaves, by name.

qwix keeps the adapters of a weight `kernel` beside it, as `kernel_lora_a`
(`[in, rank]`, scanned `[in, layers, rank]`) and `kernel_lora_b`
(`[rank, out]`, scanned `[rank, layers, out]`); a quantized weight below
`array`, as `qvalue` and `scale`.
"""

import dataclasses
import re
from collections.abc import Iterable

from relayout.errors import LayoutError
from relayout.layouts.state import Role, State, StoredLeaf
from relayout.tree.key_path import KeyPath, dotted

_A = "_lora_a"
_B = "_lora_b"


@dataclasses.dataclass(frozen=True, slots=True)
class Lora:
  """What the leaves of a checkpoint tell of its adapters.

  Attributes:
    rank: Rank, from the shapes.
    targets: Modules that have adapters, as named below their layer.
    is_adapter_only: Whether the checkpoint has no other weights.
  """

  rank: int
  targets: tuple[str, ...]
  is_adapter_only: bool


def is_lora(path: KeyPath) -> bool:
  """Tells whether `path` is one of the two factors of an adapter."""
  return path[-1].endswith((_A, _B))


def is_quantized(path: KeyPath) -> bool:
  """Tells whether `path` is a part of a quantized weight."""
  return path[-2:-1] == ("array",) and path[-1] in (
    "qvalue",
    "scale",
    "zero_point",
  )


def describe(state: State) -> Lora | None:
  """Returns what the leaves tell of the adapters, or None without any.

  Raises:
    LayoutError: If the adapters do not all have one rank.
  """
  weights = list(state.with_role(Role.WEIGHT))
  adapters = [(key.path, leaf) for key, leaf in weights if is_lora(key.path)]
  if not adapters:
    return None
  return Lora(
    rank=_rank(adapters),
    targets=tuple(sorted({_target(path) for path, _ in adapters})),
    is_adapter_only=len(adapters) == len(weights),
  )


def _rank(adapters: Iterable[tuple[KeyPath, StoredLeaf]]) -> int:
  ranks: dict[int, str] = {}
  for path, stored in adapters:
    spec = stored.leaf.spec
    assert spec is not None
    if not spec.shape:
      raise LayoutError(f"{stored.label}: a LoRA factor that is a scalar")
    rank = spec.shape[-1] if path[-1].endswith(_A) else spec.shape[0]
    ranks.setdefault(rank, stored.label)
  if len(ranks) > 1:
    found = ", ".join(f"{rank} ({label})" for rank, label in ranks.items())
    raise LayoutError(f"adapters of several ranks in one checkpoint: {found}")
  return next(iter(ranks))


def _target(path: KeyPath) -> str:
  """Returns the module below its layer; the whole path outside of layers."""
  module = path[:-1]
  start = max(
    (i for i, name in enumerate(module) if _is_layer(name)), default=-1
  )
  if (
    start >= 0 and module[start + 1 : start + 2] and module[start + 1].isdigit()
  ):
    start += 1
  return dotted(module[start + 1 :])


def _is_layer(name: str) -> bool:
  return re.fullmatch(r"(\w+_)?layers(_\d+)?|scanned_blocks", name) is not None
