"""What a conversion did, or would do: plain data, as JSON or as a table."""

import dataclasses
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relayout.convert.apply import Applied
from relayout.convert.plan import Derived, Moved, Stacked, StepPlan


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
    reason: Why it was skipped.
  """

  source: str
  target: str
  status: str
  plan: StepPlan | None = None
  applied: Applied | None = None
  seconds: float = 0.0
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


def counts(plan: StepPlan) -> dict[str, int]:
  """Returns the number of leaves by what happens to them."""
  kinds = {Moved: "renamed", Stacked: "stacked", Derived: "derived"}
  found = Counter(kinds[type(leaf.origin)] for leaf in plan.leaves)
  result = {name: found[name] for name in kinds.values()}
  result["dropped"] = len(plan.dropped)
  return result


def dropped_by_reason(plan: StepPlan) -> dict[str, list[str]]:
  """Returns the labels of the leaves that are left out, by reason."""
  result: dict[str, list[str]] = {}
  for item in plan.dropped:
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
  if step.applied:
    value["applied"] = dataclasses.asdict(step.applied)
  return value


def _plan_json(plan: StepPlan) -> dict[str, Any]:
  return {
    "facts": dict(plan.facts),
    "counts": counts(plan),
    "leaves": list(_leaves_json(plan)),
    "dropped": dropped_by_reason(plan),
    "notes": list(plan.notes),
    "custom_metadata": dict(plan.custom_metadata),
  }


def _leaves_json(plan: StepPlan) -> Iterator[dict[str, Any]]:
  for leaf in plan.leaves:
    value: dict[str, Any] = {"name": leaf.name}
    if leaf.spec:
      value |= {"shape": list(leaf.spec.shape), "dtype": leaf.spec.dtype}
    match leaf.origin:
      case Moved(source):
        value |= {"origin": "renamed", "from": [source.label]}
      case Stacked(sources, axis):
        labels = [source.label for source in sources]
        value |= {"origin": "stacked", "axis": axis, "from": labels}
      case Derived(rule, number, sources):
        labels = [source.label for source in sources]
        value |= {
          "origin": "derived",
          "rule": rule,
          "value": number,
          "from": labels,
        }
    yield value
