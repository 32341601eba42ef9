"""The schedules of `inject_hyperparams`."""

from typing import Any

from relayout.errors import LayoutError
from relayout.optimizers import leaves, nodes
from relayout.optimizers.counts import shown
from relayout.tree.key_path import KeyPath

_LEARNING_RATE = "learning_rate"


def position_path(inject: Any) -> KeyPath:
  """Returns where the schedule of the learning rate stands."""
  path = ("hyperparams_states", _LEARNING_RATE, "count")
  return ("count",) if nodes.find(inject, path) is None else path


def check_schedules(inject: Any, at: KeyPath) -> None:
  """Checks that the schedules have no state besides one position."""
  name = "hyperparams_states"
  position = nodes.find(inject, position_path(inject))
  for path, leaf in nodes.leaves(nodes.find(inject, (name,)), (name,)):
    values = leaves.known_int(leaf), leaves.known_int(position)
    if len(path) != 3 or path[2] != "count":
      raise LayoutError(
        f"{shown((*at, *path))}: a schedule with a state of its own, which a "
        "plain state has no place for"
      )
    if None not in values and values[0] != values[1]:
      raise LayoutError(
        f"{shown((*at, *path))} is {values[0]}, and the learning rate's "
        f"schedule is at {values[1]}; a plain state keeps one number for both"
      )
