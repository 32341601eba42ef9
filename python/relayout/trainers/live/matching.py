"""Which stored leaf goes into which live variable, and what does not fit."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from relayout.convert.plan import Derived, TargetLeaf
from relayout.convert.source import Source
from relayout.errors import LayoutError
from relayout.layouts import lora
from relayout.layouts.state import Role
from relayout.layouts.variables import is_rng
from relayout.trainers.live.live_state import LiveState
from relayout.trainers.live.variables import LiveVariable

type Planned = Mapping[str, Mapping[str, TargetLeaf]]
"""Leaves by item and name."""

_INJECTED = "hyperparams"
_MAY_STAY = (Role.RNG, Role.AUXILIARY)


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
  """What is put where.

  Attributes:
    leaves: What is put, by `<item>/<name>`.
    variables: Where it is put, by the same.
    notes: Which variables stay as they are, and which leaves aren't used.
  """

  leaves: Mapping[str, TargetLeaf]
  variables: Mapping[str, LiveVariable]
  notes: tuple[str, ...]


def match(planned: Planned, source: Source, live: LiveState) -> Match:
  """Pairs planned leaves with live variables.

  Rng state and what is no weight may be missing, and stays as it is; so does
  the optimizer, if none is stored.

  Args:
    planned: What the stored state becomes for a live one of this kind.
    source: What is stored.
    live: What it is put into; stored weights that it has no variable for are
      left out if it is a part of a model.

  Raises:
    LayoutError: If they differ otherwise; lists every leaf, and what may be
      the cause.
  """
  variables = {
    f"{item}/{name}": variable
    for item, lives in live.variables.items()
    for name, variable in lives.items()
    if item in planned
  }
  leaves = {
    f"{item}/{name}": leaf
    for item, found in planned.items()
    for name, leaf in found.items()
    if not _is_unknown(leaf)
  }
  optional = _optional(source, live)
  missing = [label for label in variables if label not in leaves]
  unused = [label for label in leaves if label not in variables]
  problems = [
    *_missing(missing, variables, optional),
    *_unused(unused, leaves, optional, live),
    *_shapes(leaves, variables),
  ]
  if problems:
    raise _mismatch(problems, leaves, variables, source, live)
  both = [label for label in variables if label in leaves]
  return Match(
    leaves={label: leaves[label] for label in both},
    variables={label: variables[label] for label in both},
    notes=tuple(_notes(missing, unused, planned, live)),
  )


def _is_unknown(leaf: TargetLeaf) -> bool:
  """Whether a leaf is a hyperparameter whose value no checkpoint tells."""
  return isinstance(leaf.origin, Derived) and _INJECTED in leaf.path.names


def _optional(source: Source, live: LiveState) -> frozenset[str]:
  """Returns the labels of what need not be on both sides."""
  stored = [
    stored.label
    for state in (live.state, source.state)
    for _, stored in state.with_role(*_MAY_STAY)
  ]
  return frozenset((*stored, *live.ephemeral))


def _may_differ(label: str, optional: frozenset[str]) -> bool:
  names = tuple(label.partition("/")[2].split("."))
  return label in optional or _INJECTED in names or is_rng(names[:-1])


def _missing(
  labels: Sequence[str],
  variables: Mapping[str, LiveVariable],
  optional: frozenset[str],
) -> Iterator[str]:
  for label in labels:
    if not _may_differ(label, optional):
      data = variables[label].data
      shape = list(data.shape)
      yield f"{label}: the model has {data.dtype} {shape}; not stored"


def _unused(
  labels: Sequence[str],
  leaves: Mapping[str, TargetLeaf],
  optional: frozenset[str],
  live: LiveState,
) -> Iterator[str]:
  for label in labels:
    leaf = leaves[label]
    if live.is_part or leaf.spec is None or _may_differ(label, optional):
      continue
    if not _is_auxiliary(leaf, optional):
      yield (
        f"{label}: stored as {leaf.spec.dtype} {list(leaf.spec.shape)}; the "
        "model has no such variable"
      )


def _is_auxiliary(leaf: TargetLeaf, optional: frozenset[str]) -> bool:
  sources = leaf.origin.sources
  return bool(sources) and all(stored.label in optional for stored in sources)


def _shapes(
  leaves: Mapping[str, TargetLeaf], variables: Mapping[str, LiveVariable]
) -> Iterator[str]:
  for label, variable in variables.items():
    leaf = leaves.get(label)
    if leaf is None or leaf.spec is None:
      continue
    shape = tuple(variable.data.shape)
    if leaf.spec.shape != shape:
      yield (
        f"{label}: stored with shape {list(leaf.spec.shape)}, the model has "
        f"{list(shape)}"
      )


def _notes(
  missing: Sequence[str],
  unused: Sequence[str],
  planned: Planned,
  live: LiveState,
) -> Iterator[str]:
  for item in live.variables:
    if item not in planned:
      yield f"no {item} is stored: the live one stays as it is"
  for labels, what in (
    (missing, "not stored, so they stay as they are"),
    (unused, "stored, but of no use to this model"),
  ):
    if labels:
      more = f", and {len(labels) - 4} more" if len(labels) > 4 else ""
      yield f"{', '.join(labels[:4])}{more}: {what}"


def _mismatch(
  problems: Sequence[str],
  leaves: Mapping[str, TargetLeaf],
  variables: Mapping[str, LiveVariable],
  source: Source,
  live: LiveState,
) -> LayoutError:
  listed = "\n  ".join(problems)
  return LayoutError(
    f"{source.path} does not fit the model: {len(problems)} differences.\n"
    f"  {listed}\n{_likely_cause(leaves, variables, source, live)}"
  )


def _likely_cause(
  leaves: Mapping[str, TargetLeaf],
  variables: Mapping[str, LiveVariable],
  source: Source,
  live: LiveState,
) -> str:
  stored = lora.describe(source.state)
  if stored and stored.is_adapter_only and not live.is_part:
    return (
      "The checkpoint holds LoRA adapters only: pass "
      "restore_only_lora_params=True, to a model that has its base weights"
    )
  if stored is None and lora.describe(live.state):
    return (
      "The model has LoRA adapters and the checkpoint has none: it is one of "
      "the base model. Load it before the adapters are added"
    )
  if not leaves.keys() & variables.keys():
    return "They have no leaf in common: is it a checkpoint of another model?"
  return (
    "Is it a checkpoint of another model, of another size of it, or of another "
    "optimizer?"
  )
