"""What a conversion did, or would do: plain data, as JSON or as a table."""

import dataclasses
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relayout.convert import aside
from relayout.convert.apply import Applied
from relayout.convert.plan import Derived, StepPlan, Stored, TargetLeaf, Way


@dataclasses.dataclass(frozen=True, slots=True)
class StepReport:
  """One step of the source.

  Attributes:
    source: The step or item directory.
    target: The target's step directory.
    status: `converted`, `planned` (a dry run), or `skipped`.
    plan: What it becomes; None when it was skipped.
    applied: What was done; None unless it was converted.
    seconds: Wall time for this step.
    expected_memory_bytes: What the buffers of a rewrite take; 0 without one.
    reason: Why it was skipped.
  """

  source: str
  target: str
  status: str
  plan: StepPlan | None = None
  applied: Applied | None = None
  seconds: float = 0.0
  expected_memory_bytes: int = 0
  reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
  """A whole conversion."""

  steps: tuple[StepReport, ...]
  notes: tuple[str, ...]
  seconds: float
  peak_memory_bytes: int

  def to_json(self) -> dict[str, Any]:
    """Returns the report as JSON values."""
    return {
      "steps": [_step_json(step) for step in self.steps],
      "notes": list(self.notes),
      "seconds": round(self.seconds, 6),
      "peak_memory_bytes": self.peak_memory_bytes,
    }


def peak_memory_bytes() -> int:
  """Returns the largest resident size of this process so far, bytes.

  From Linux's VmHWM: `ru_maxrss` may be that of the process that started this
  one.
  """
  for line in Path("/proc/self/status").read_text().splitlines():
    if line.startswith("VmHWM:"):
      return int(line.split()[1]) * 1024
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


_VERBS = ("renamed", "stacked", "unstacked", "restacked", "derived")


def counts(plan: StepPlan) -> dict[str, int]:
  """Returns the number of leaves by what happens to them."""
  found = Counter(
    "derived" if isinstance(leaf.origin, Derived) else leaf.origin.verb
    for item in plan.targets
    if item.name != aside.ITEM
    for leaf in item.leaves
  )
  result = {verb: found[verb] for verb in _VERBS if found[verb]}
  result["set aside"] = len(leaves_set_aside(plan))
  result["dropped"] = len(plan.dropped) - len(dropped_but_kept(plan))
  return result


def leaves_set_aside(plan: StepPlan) -> dict[str, TargetLeaf]:
  """Returns what is set aside, by the label of the source leaf."""
  return {
    stored.label: leaf
    for item in plan.targets
    if item.name == aside.ITEM
    for leaf in item.leaves
    for stored in leaf.origin.sources
  }


def dropped_but_kept(plan: StepPlan) -> set[str]:
  """Returns the labels of leaves that are left out, and set aside."""
  return leaves_set_aside(plan).keys() & {d.leaf.label for d in plan.dropped}


@dataclasses.dataclass(frozen=True, slots=True)
class WayTotal:
  """What comes into the target in one way, for one reason.

  Attributes:
    way: How.
    reason: Why chunks are rewritten; "" if they are not.
    num_leaves: Number of arrays.
    num_bytes: Their size in memory, bytes.
  """

  way: Way
  reason: str
  num_leaves: int
  num_bytes: int


def by_way(plan: StepPlan) -> list[WayTotal]:
  """Returns how arrays come into the target, the cheapest way first."""
  leaves: Counter[tuple[Way, str]] = Counter()
  sizes: Counter[tuple[Way, str]] = Counter()
  for leaf in plan.leaves:
    if isinstance(leaf.origin, Stored) and leaf.spec:
      key = leaf.origin.way, leaf.origin.reason
      leaves[key] += 1
      sizes[key] += leaf.spec.num_bytes
  order = list(Way)
  return [
    WayTotal(*key, leaves[key], sizes[key])
    for key in sorted(leaves, key=lambda key: (order.index(key[0]), key[1]))
  ]


def dropped_by_reason(
  plan: StepPlan, *, set_aside: bool = False
) -> dict[str, list[str]]:
  """Returns the labels of the leaves that are left out, by reason.

  Args:
    plan: The plan.
    set_aside: Those that are set aside, instead of those that are lost.
  """
  kept = dropped_but_kept(plan)
  result: dict[str, list[str]] = {}
  for item in plan.dropped:
    if (item.leaf.label in kept) is set_aside:
      result.setdefault(item.reason, []).append(item.leaf.label)
  return result


def _step_json(step: StepReport) -> dict[str, Any]:
  value: dict[str, Any] = {
    "source": step.source,
    "target": step.target,
    "status": step.status,
    "seconds": round(step.seconds, 6),
  }
  if step.reason:
    value["reason"] = step.reason
  if step.plan:
    value |= _plan_json(step.plan)
    value["expected_memory_bytes"] = step.expected_memory_bytes
  if step.applied:
    value["applied"] = dataclasses.asdict(step.applied)
  return value


def _plan_json(plan: StepPlan) -> dict[str, Any]:
  return {
    "facts": dict(plan.facts),
    "counts": counts(plan),
    "ways": [_way_json(total) for total in by_way(plan)],
    "leaves": list(_leaves_json(plan)),
    "carried": [str(path) for path in plan.carried],
    "dropped": dropped_by_reason(plan),
    "set_aside": dropped_by_reason(plan, set_aside=True),
    "notes": list(plan.notes),
    "custom_metadata": dict(plan.custom_metadata),
  }


def _way_json(total: WayTotal) -> dict[str, Any]:
  return dataclasses.asdict(total) | {"way": total.way.value}


def _leaves_json(plan: StepPlan) -> Iterator[dict[str, Any]]:
  for item in plan.targets:
    for leaf in item.leaves:
      yield {"item": item.name} | _leaf_json(leaf)


def _leaf_json(leaf: TargetLeaf) -> dict[str, Any]:
  value: dict[str, Any] = {"name": leaf.name}
  if leaf.spec:
    value |= {
      "shape": list(leaf.spec.shape),
      "dtype": leaf.spec.dtype,
      "chunk_shape": list(leaf.spec.chunk_shape),
    }
  labels = [stored.label for stored in leaf.origin.sources]
  if isinstance(leaf.origin, Derived):
    return value | {
      "origin": "derived",
      "rule": leaf.origin.rule,
      "value": leaf.origin.value,
      "from": labels,
    }
  value |= {
    "origin": leaf.origin.verb,
    "way": leaf.origin.way.value,
    "from": labels,
  }
  pins = leaf.origin.slots[0].target_pins
  if pins:
    value["layer_axes"] = [axis for axis, _ in pins]
  if leaf.origin.reason:
    value["reason"] = leaf.origin.reason
  return value
