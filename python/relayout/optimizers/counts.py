"""The counters of a plain state: of updates, and of schedules."""

from collections.abc import Sequence
from typing import Any

from relayout.errors import LayoutError
from relayout.optimizers import leaves, nodes, structure
from relayout.tree.key_path import KeyPath, dotted


def shown(path: KeyPath) -> str:
  """Returns a path in an optimizer state as messages show it."""
  return dotted(("opt_state", *path))


def updates_of(plain: Any, given: int | None, at: KeyPath) -> Any:
  """Returns the leaf of a plain state that counts its updates.

  Args:
    plain: The state.
    given: Taken instead, where there is none.
    at: Where it is to go, for messages.

  Raises:
    LayoutError: If there is neither, or two that differ.
  """
  found = list(structure.update_counts(plain))
  if not found:
    own = structure.own_schedules(plain)
    found = [(*path, "count") for path in own]
  if found:
    return agreed(plain, found, at)
  if given is None:
    raise LayoutError(
      f"{shown(at)}: the plain state does not count its updates, and a wrapper "
      "does. Pass num_updates"
    )
  return given


def agreed(plain: Any, paths: Sequence[KeyPath], at: KeyPath) -> Any:
  """Returns the counter at `paths`; where there are several, they must agree.

  Raises:
    LayoutError: If one is missing, or they differ.
  """
  found = {path: nodes.find(plain, path) for path in paths}
  for path, leaf in found.items():
    if leaf is None:
      raise LayoutError(
        f"{shown(at)}: the plain state has no {dotted(path)}, the position of "
        "the learning-rate schedule. Optimizers with a schedule keep one"
      )
  (first, leaf), *others = found.items()
  for path, other in others:
    _check_equal(first, leaf, path, other)
  return leaf


def check_position(plain: Any, position: Any, at: KeyPath) -> None:
  """Checks that a plain state itself tells the position of a schedule.

  Args:
    plain: A state with no place for the position.
    position: Of the schedule of an injected hyperparameter.
    at: Where that was.

  Raises:
    LayoutError: If it does not.
  """
  own = [(*path, "count") for path in structure.own_schedules(plain)]
  found = own or list(structure.update_counts(plain))
  if not found:
    raise LayoutError(
      f"{shown(at)}: the plain state has no place for the position of the "
      "schedule, and counts no updates"
    )
  for path in found:
    _check_equal(at, position, path, nodes.find(plain, path))


def _check_equal(
  first: KeyPath, leaf: Any, second: KeyPath, other: Any
) -> None:
  values = leaves.known_int(leaf), leaves.known_int(other)
  if None not in values and values[0] != values[1]:
    raise LayoutError(
      f"{dotted(first)} is {values[0]}, and {dotted(second)} {values[1]}; a "
      "plain state keeps one number for both"
    )
