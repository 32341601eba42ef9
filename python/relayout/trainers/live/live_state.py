"""A live model and optimizer as a source of a conversion.

Read by the rules of Tunix's layout, which is `nnx.state` as it is; only what a
variable is comes from its type, not from its name.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx

from relayout.convert.source import Source
from relayout.errors import LayoutError
from relayout.layouts import tunix
from relayout.layouts.state import State, StateKey, StoredLeaf
from relayout.metadata.item import Item
from relayout.metadata.step_metadata import StepMetadata
from relayout.trainers.live.variables import (
  LiveVariable,
  ephemeral_names,
  role_of,
  variables,
)

_PATH = Path("the live model")


@dataclasses.dataclass(frozen=True, slots=True)
class LiveState:
  """A live training state.

  Attributes:
    source: What it is, as if it were a step on disk.
    variables: Its variables, by item and by the leaf's name there.
    is_part: Whether these are only some of the model's.
    unknown: Why the optimizer's state can't be told apart, or ""; it is then
      no part of `state`.
    ephemeral: Labels of what is recomputed, and no part of it.
  """

  source: Source
  variables: Mapping[str, Mapping[str, LiveVariable]]
  is_part: bool
  unknown: str
  ephemeral: frozenset[str]

  @property
  def state(self) -> State:
    """What each variable is."""
    return self.source.state

  def variable(self, stored: StoredLeaf) -> LiveVariable:
    """Returns the variable that a leaf of `source` stands for."""
    return self.variables[stored.item.name][stored.leaf.name]


def live_state(
  model: nnx.Module,
  optimizer: nnx.Optimizer[Any] | None = None,
  *,
  only: type[nnx.Variable[Any]] | None = None,
  step: int | None = None,
  custom_metadata: Mapping[str, Any] | None = None,
) -> LiveState:
  """Reads a model and its optimizer.

  Args:
    model: The model.
    optimizer: Its optimizer; None to leave it out.
    only: Type of the model's variables to take; None for all.
    step: Number of the step's directory.
    custom_metadata: What a step of it would record.

  Raises:
    LayoutError: If a variable holds no array.
  """
  found = {tunix.MODEL_ITEM: [*variables(model, *((only,) if only else ()))]}
  if optimizer is not None:
    found[tunix.OPTIMIZER_ITEM] = [
      *variables(optimizer, nnx.optimizer.OptState)
    ]
  by_name = {
    item: {live.name: live for live in lives} for item, lives in found.items()
  }
  items = {name: _item(name, lives) for name, lives in by_name.items()}
  state, unknown = _state(items, by_name)
  source = Source(
    path=_PATH,
    number=step,
    layout="tunix",
    items=tuple(items.values()),
    state=state,
    aside=None,
    carried=(),
    metadata=StepMetadata(custom_metadata=custom_metadata or {}),
    notes=(),
  )
  ephemeral = frozenset(
    f"{tunix.MODEL_ITEM}/{name}" for name in ephemeral_names(model)
  )
  return LiveState(source, by_name, only is not None, unknown, ephemeral)


class _Values:
  """Reads small values of live variables."""

  def __init__(self, lives: Mapping[str, LiveVariable]) -> None:
    self._lives = lives

  def read_small(self, name: str) -> list[int | float]:
    data = np.asarray(self._lives[name].data)
    values: list[int | float] = data.ravel().tolist()
    return values


def _item(name: str, lives: Mapping[str, LiveVariable]) -> Item:
  return Item(
    directory=_PATH / name,
    name=name,
    store="ocdbt",
    listings=(),
    leaves=tuple(live.item_leaf() for live in lives.values()),
    use_zarr3=True,
    missing_side_files=(),
    notes=(),
    tree=None,
    _values=_Values(lives),
  )


def _state(
  items: Mapping[str, Item], by_name: Mapping[str, Mapping[str, LiveVariable]]
) -> tuple[State, str]:
  """Returns what the variables are, and why not all of them are known."""
  model = items[tunix.MODEL_ITEM]
  lives = by_name[tunix.MODEL_ITEM]
  adapter = tunix.adapter_level(live.path for live in lives.values())
  leaves = {
    _key(lives[leaf.name], adapter): StoredLeaf(model, leaf)
    for leaf in model.leaves
  }
  state = State(leaves=leaves, optimizer=None, step=None, adapter=adapter)
  optimizer = items.get(tunix.OPTIMIZER_ITEM)
  if optimizer is None:
    return state, ""
  try:
    return tunix.with_optimizer(state, optimizer), ""
  except LayoutError as error:
    step = dataclasses.replace(
      optimizer,
      leaves=tuple(x for x in optimizer.leaves if x.path.names[0] == "step"),
    )
    return tunix.with_optimizer(state, step), str(error)


def _key(live: LiveVariable, adapter: str) -> StateKey:
  path = live.path[1:] if adapter else live.path
  return StateKey(role_of(live.variable), path)
