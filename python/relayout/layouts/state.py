"""One description of a training state that every layout reads into.

A state says what each stored leaf *is* (the weight of this module, the first
moment of that weight, the number of updates), apart from where a trainer keeps
it.  It holds no values except a few counters.
"""

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Literal

from relayout.errors import LayoutError
from relayout.metadata.item import Item, ItemLeaf
from relayout.tree.key_path import KeyPath, dotted

type LayoutName = Literal["tunix", "maxtext", "unknown"]
type OptimizerKind = Literal["adamw", "adam_pax"]
type ScanMode = Literal["scanned", "unscanned", "unknown"]


class Role(enum.Enum):
  """What a leaf is to the training run."""

  WEIGHT = "weight"
  MOMENT = "moment"
  COUNT = "count"
  SCHEDULE_COUNT = "schedule count"
  STEP = "step"
  RNG = "rng"
  AUXILIARY = "auxiliary"


@dataclasses.dataclass(frozen=True, slots=True)
class StateKey:
  """The name of a leaf that does not depend on a layout.

  Attributes:
    role: What the leaf is.
    path: Path in the model, without the adapter level and without the level
      that an `nnx.Variable` adds; empty for counters.
    slot: The accumulator of a moment: `mu` or `nu`.
  """

  role: Role
  path: KeyPath = ()
  slot: str = ""

  def __str__(self) -> str:
    where = f" {dotted(self.path)}" if self.path else ""
    slot = f" {self.slot}" if self.slot else ""
    return f"{self.role.value}{slot}{where}"


@dataclasses.dataclass(frozen=True, slots=True)
class StoredLeaf:
  """A leaf together with the item that stores it."""

  item: Item
  leaf: ItemLeaf

  @property
  def label(self) -> str:
    """How messages name the leaf: `<item>/<array name>`."""
    return f"{self.item.name}/{self.leaf.name}"

  def read_int(self) -> int:
    """Returns the value of a scalar integer leaf.

    Raises:
      CorruptCheckpointError: If its chunk is damaged.
      LayoutError: If it is no single integer.
    """
    spec = self.leaf.spec
    if spec is None or spec.shape or not spec.dtype.startswith(("int", "uint")):
      found = f"{spec.dtype} of shape {list(spec.shape)}" if spec else "None"
      raise LayoutError(
        f"{self.item.directory}: {self.leaf.name}: expected one integer, found "
        f"{found}"
      )
    return int(self.item.read_small(self.leaf)[0])


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
  """A number of updates, with the rule that gave it.

  Attributes:
    value: Number of optimizer updates.
    rule: How it was found, for reports.
    sources: The stored leaves it was read from.
  """

  value: int
  rule: str
  sources: tuple[StoredLeaf, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
  """A stored leaf that is no part of the state, and why."""

  leaf: StoredLeaf
  reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Accumulation:
  """Gradient accumulation around an optimizer (`optax.MultiSteps`).

  Attributes:
    mini_step: Micro-steps taken since the last update.
  """

  mini_step: int


@dataclasses.dataclass(frozen=True, slots=True)
class State:
  """A training state, as read from one step of a checkpoint.

  Attributes:
    leaves: The stored leaves by what they are.
    optimizer: Which optimizer the moments belong to; None without moments.
    step: Updates done, or None when the checkpoint does not say.
    schedule_count: Position of the learning-rate schedule, where it is kept
      under another name than `Role.SCHEDULE_COUNT` has; None otherwise.
    accumulation: Unfinished or finished accumulation; None without it.
    adapter: Name of the adapter level that was stripped, or "".
    wrappers: Optimizer wrappers that were removed, outermost first.
    dropped: Leaves that are left out, each with its reason.
    notes: Facts for the report.
  """

  leaves: Mapping[StateKey, StoredLeaf]
  optimizer: OptimizerKind | None
  step: Counter | None
  schedule_count: Counter | None = None
  accumulation: Accumulation | None = None
  adapter: str = ""
  wrappers: tuple[str, ...] = ()
  dropped: tuple[Dropped, ...] = ()
  notes: tuple[str, ...] = ()

  def with_role(self, *roles: Role) -> Iterator[tuple[StateKey, StoredLeaf]]:
    """Yields the leaves that have one of `roles`."""
    return (
      (key, leaf) for key, leaf in self.leaves.items() if key.role in roles
    )

  @property
  def weight_paths(self) -> tuple[KeyPath, ...]:
    """Model paths of the weights."""
    return tuple(key.path for key, _ in self.with_role(Role.WEIGHT))
