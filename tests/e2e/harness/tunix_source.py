"""What a Tunix checkpoint says, read with TensorStore alone.

Nothing here uses relayout, Orbax or MaxText: the tests compare MaxText's
restored state with these arrays, so the two ways must have no code in common.
"""

import dataclasses
import pathlib
import re
from collections.abc import Mapping

import numpy as np
import tensorstore as ts

Arrays = dict[str, np.ndarray]

_RNG = re.compile(r"(^|\.)(rngs|dropout)\.")
_LAYER = re.compile(r"(^|\.)layers_(\d+)\.")


@dataclasses.dataclass(frozen=True)
class TrainState:
  """The parts of a training state; paths are joined with ".".

  Attributes:
    weights: Path to value, as in the model.
    mu: First moments, by the path of their weight.
    nu: Second moments.
    count: Adam's update count.
    schedule_count: The learning rate schedule's position.
    step: How many updates were made.
    aux: Random number state.
  """

  weights: Arrays
  mu: Arrays
  nu: Arrays
  count: int
  schedule_count: int
  step: int
  aux: Arrays


def step_numbers(checkpoints: pathlib.Path) -> list[int]:
  """Returns the numbers of the step directories, in order."""
  names = [path.name for path in checkpoints.iterdir()]
  return sorted(int(name) for name in names if name.isdigit())


def latest_step(checkpoints: pathlib.Path) -> pathlib.Path:
  """Returns the step directory with the highest number."""
  return checkpoints / str(step_numbers(checkpoints)[-1])


def read_item(item: pathlib.Path) -> Arrays:
  """Returns every array of an OCDBT item, by its name."""
  base = {"driver": "ocdbt", "base": f"file://{item.resolve()}/"}
  keys = [k.decode() for k in ts.KvStore.open(base).result().list().result()]
  arrays = {}
  for key in sorted(keys):
    name, _, last = key.rpartition("/")
    driver = {".zarray": "zarr", "zarr.json": "zarr3"}.get(last)
    if driver:
      spec = {"driver": driver, "kvstore": {**base, "path": f"{name}/"}}
      arrays[name] = ts.open(spec, read=True).result().read().result()
  return arrays


def read(step: pathlib.Path) -> TrainState:
  """Reads a step directory that Tunix wrote."""
  model, optimizer = (
    {name.removesuffix(".value"): array for name, array in arrays.items()}
    for arrays in map(
      read_item, (step / "model_params", step / "optimizer_state")
    )
  )
  return train_state(model, optimizer)


def train_state(model: Arrays, optimizer: Arrays) -> TrainState:
  """Returns the state in Tunix's arrays, by their paths without `value`."""
  model = {_weight_path(path): array for path, array in model.items()}
  is_rng = {path: bool(_RNG.search(path)) for path in model}
  adam = _adam_prefix(optimizer)
  return TrainState(
    weights={path: a for path, a in model.items() if not is_rng[path]},
    mu=_moments(optimizer, f"{adam}.mu."),
    nu=_moments(optimizer, f"{adam}.nu."),
    count=int(optimizer[f"{adam}.count"]),
    schedule_count=_schedule_count(optimizer, adam),
    step=int(optimizer.get("opt_state.gradient_step", optimizer["step"])),
    aux={path: a for path, a in model.items() if is_rng[path]},
  )


def stacked(state: TrainState) -> TrainState:
  """Returns `state` with `layers_<i>` stacked into `layers` on axis 1."""
  return dataclasses.replace(
    state,
    weights=_stack(state.weights),
    mu=_stack(state.mu),
    nu=_stack(state.nu),
    aux={},
  )


def _weight_path(name: str) -> str:
  return name.removesuffix(".value").removeprefix("base.")


def _adam_prefix(optimizer: Mapping[str, np.ndarray]) -> str:
  """Returns the one place below which `mu` and `nu` lie."""
  found = {
    m.group(1) for name in optimizer if (m := re.match(r"(.*?)\.mu\.", name))
  }
  (prefix,) = found
  return prefix


def _moments(optimizer: Mapping[str, np.ndarray], prefix: str) -> Arrays:
  return {
    _weight_path(name.removeprefix(prefix)): array
    for name, array in optimizer.items()
    if name.startswith(prefix)
  }


def _schedule_count(optimizer: Mapping[str, np.ndarray], adam: str) -> int:
  """The count of chain member 2, else the injector's, else Adam's own."""
  chain, _, _ = adam.rpartition(".")
  own = f"{chain}.2.count"
  if own in optimizer:
    return int(optimizer[own])
  injector, _, _ = adam.partition(".inner_state.")
  injected = f"{injector}.hyperparams_states.learning_rate.count"
  return int(optimizer.get(injected, optimizer[f"{adam}.count"]))


def _stack(arrays: Arrays) -> Arrays:
  layers: dict[str, dict[int, np.ndarray]] = {}
  result = {}
  for path, array in arrays.items():
    match = _LAYER.search(path)
    if match:
      stack = _LAYER.sub(r"\1layers.", path)
      layers.setdefault(stack, {})[int(match.group(2))] = array
    else:
      result[path] = array
  for path, by_index in layers.items():
    order = [by_index[i] for i in range(len(by_index))]
    result[path] = np.stack(order, axis=1)
  return result
