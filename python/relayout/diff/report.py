"""In what two checkpoints differ: plain data, and as JSON."""

import dataclasses
import enum
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from relayout.comparison.keys import ROLES, Key
from relayout.comparison.mismatch import Extreme, Mismatch


class Status(enum.StrEnum):
  """How a leaf compares."""

  EQUAL = "equal"
  VALUE = "value"
  DTYPE = "dtype"
  SHAPE = "shape"
  METADATA = "metadata"
  ONLY_A = "only in A"
  ONLY_B = "only in B"
  NO_PLACE = "no place"
  SKIPPED = "not compared"

  @property
  def is_difference(self) -> bool:
    """Whether the two sides differ in the leaf."""
    return self not in (Status.EQUAL, Status.NO_PLACE, Status.SKIPPED)


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
  """Where one side has a leaf.

  Attributes:
    name: `<item>/<array>`, with the index of the layer in a stack.
    shape: Its shape.
    dtype: Its data type; what an empty leaf is instead.
    hash: Hash of its values, 128 bits in hexadecimal, or "".
  """

  name: str
  shape: tuple[int, ...]
  dtype: str
  hash: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LeafDiff:
  """How one leaf compares.

  Attributes:
    key: What the leaf is.
    status: How it compares.
    a: Where the first side has it, or None.
    b: Where the second side has it, or None.
    detail: More about the status, or "".
    mismatch: Where the values differ, or None.
  """

  key: Key
  status: Status
  a: Stored | None
  b: Stored | None
  detail: str = ""
  mismatch: Mismatch | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class StepDiff:
  """How two steps compare.

  Attributes:
    a: Directory of the first.
    b: Directory of the second.
    facts: (name, of the first, of the second) of what they are as wholes.
    leaves: All leaves, in the order of roles and names.
    notes: What the user should know.
    num_bytes: Size of the values that were compared, bytes.
    seconds: Wall time.
  """

  a: str
  b: str
  facts: tuple[tuple[str, str, str], ...]
  leaves: tuple[LeafDiff, ...]
  notes: tuple[str, ...]
  num_bytes: int
  seconds: float

  @property
  def differences(self) -> tuple[LeafDiff, ...]:
    """The leaves in which the steps differ."""
    return tuple(leaf for leaf in self.leaves if leaf.status.is_difference)

  def by_role(self) -> Mapping[str, Mapping[Status, int]]:
    """Returns the number of leaves of each status, by role."""
    counts = {role: Counter[Status]() for role in ROLES}
    for leaf in self.leaves:
      counts[leaf.key.role][leaf.status] += 1
    return {role: found for role, found in counts.items() if found}


@dataclasses.dataclass(frozen=True, slots=True)
class DiffReport:
  """A whole comparison.

  Attributes:
    a: The first checkpoint, as it was given.
    b: The second.
    steps: Pairs of steps.
    unpaired: Steps of either side without a counterpart, in words.
    seconds: Wall time.
  """

  a: str
  b: str
  steps: tuple[StepDiff, ...]
  unpaired: tuple[str, ...]
  seconds: float

  @property
  def is_equal(self) -> bool:
    """Whether nothing differs."""
    return not self.unpaired and not any(
      step.differences for step in self.steps
    )

  def to_json(self) -> dict[str, Any]:
    """Returns the report as JSON values."""
    return {
      "a": self.a,
      "b": self.b,
      "is_equal": self.is_equal,
      "steps": [_step_json(step) for step in self.steps],
      "unpaired": list(self.unpaired),
      "seconds": round(self.seconds, 6),
    }


def _step_json(step: StepDiff) -> dict[str, Any]:
  return {
    "a": step.a,
    "b": step.b,
    "facts": {name: {"a": a, "b": b} for name, a, b in step.facts},
    "counts": {
      role: {str(status): number for status, number in found.items()}
      for role, found in step.by_role().items()
    },
    "leaves": list(map(_leaf_json, step.leaves)),
    "notes": list(step.notes),
    "num_bytes": step.num_bytes,
    "seconds": round(step.seconds, 6),
  }


def _leaf_json(leaf: LeafDiff) -> dict[str, Any]:
  value: dict[str, Any] = {
    "role": leaf.key.role,
    "slot": leaf.key.slot,
    "path": ".".join(leaf.key.path),
    "status": str(leaf.status),
    "a": _stored_json(leaf.a),
    "b": _stored_json(leaf.b),
    "detail": leaf.detail,
  }
  if leaf.mismatch:
    value["num_different"] = leaf.mismatch.count
    value["first"] = _extreme_json(leaf.mismatch.first)
    value["largest"] = _extreme_json(leaf.mismatch.largest)
    value["largest_relative"] = _extreme_json(leaf.mismatch.largest_relative)
  return value


def _stored_json(stored: Stored | None) -> dict[str, Any] | None:
  if stored is None:
    return None
  value: dict[str, Any] = {
    "name": stored.name,
    "shape": list(stored.shape),
    "dtype": stored.dtype,
  }
  return value | ({"hash": stored.hash} if stored.hash else {})


def _extreme_json(extreme: Extreme) -> dict[str, Any]:
  size = extreme.difference
  return {
    # JSON has no infinity.
    "difference": size if math.isfinite(size) else str(size),
    "index": list(extreme.index),
    "a": extreme.a,
    "b": extreme.b,
  }


def in_order(leaves: Iterable[LeafDiff]) -> tuple[LeafDiff, ...]:
  """Returns leaves by role, then by name with numbers in order."""
  places = {role: place for place, role in enumerate(ROLES)}

  def order(leaf: LeafDiff) -> tuple[Any, ...]:
    path = tuple(tuple(_natural(name)) for name in leaf.key.path)
    return places[leaf.key.role], leaf.key.slot, path

  return tuple(sorted(leaves, key=order))


def _natural(name: str) -> Iterator[tuple[int, int, str]]:
  """Yields what a name is ordered by: `layers_9` goes before `layers_10`."""
  head = name.rstrip("0123456789")
  yield 0, 0, head
  if head != name:
    yield 1, int(name[len(head) :][:18]), name
