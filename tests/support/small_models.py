"""Small NNX models with optimizers as trainers build them.

Not those of `models`, which are MaxText's names without arrays: these train.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

WIDTH = 4
NUM_LAYERS = 3


class Table(nnx.Variable):
  """A variable that is no weight, and persists."""


class Block(nnx.Module):
  """One layer: a matrix, and dropout with its own random state."""

  def __init__(self, rngs: nnx.Rngs) -> None:
    self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
    self.dropout = nnx.Dropout(0.5, rngs=rngs)

  def __call__(self, x: jax.Array) -> jax.Array:
    return x + self.dropout(jnp.tanh(self.dense(x)))


class Decoder(nnx.Module):
  """Layers, each with a name of its own, or stacked and scanned."""

  def __init__(self, rngs: nnx.Rngs, *, scan: bool, axis: int) -> None:
    self.scan, self.axis = scan, axis
    if scan:
      make = nnx.split_rngs(splits=NUM_LAYERS)(
        nnx.vmap(Block, in_axes=0, out_axes=_axes(axis))
      )
      self.layers = make(rngs)
    else:
      for i in range(NUM_LAYERS):
        setattr(self, f"layers_{i}", Block(rngs))
    self.table = Table(jnp.arange(3.0))

  def __call__(self, x: jax.Array) -> jax.Array:
    if not self.scan:
      for i in range(NUM_LAYERS):
        x = getattr(self, f"layers_{i}")(x)
      return x
    step = nnx.scan(
      lambda x, layer: (layer(x), None),
      in_axes=(nnx.Carry, _axes(self.axis)),
      out_axes=(nnx.Carry, 0),
    )
    return step(x, self.layers)[0]


def _axes(axis: int) -> Any:
  return nnx.StateAxes({nnx.Param: axis, ...: 0})


class Model(nnx.Module):
  """A model with MaxText's names."""

  def __init__(self, seed: int, *, scan: bool = False, axis: int = 1) -> None:
    self.decoder = Decoder(nnx.Rngs(seed), scan=scan, axis=axis)

  def __call__(self, x: jax.Array) -> jax.Array:
    return self.decoder(x)


class Adapter(nnx.Module):
  """A model below the level that Tunix's adapter adds."""

  def __init__(self, base: nnx.Module) -> None:
    self.base = base

  def __call__(self, x: jax.Array) -> jax.Array:
    return self.base(x)


def _schedule() -> optax.Schedule:
  return optax.linear_schedule(0.1, 0.01, 10)


def _clipped(learning_rate: Any) -> optax.GradientTransformation:
  return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(learning_rate))


def _injected() -> optax.GradientTransformation:
  return optax.inject_hyperparams(_clipped)(learning_rate=_schedule())


OPTIMIZERS: dict[str, Callable[[], Any]] = {
  "plain": lambda: optax.adamw(_schedule()),
  "clip": lambda: _clipped(_schedule()),
  "multi_steps": lambda: optax.MultiSteps(_clipped(_schedule()), 1),
  "multi_steps_2": lambda: optax.MultiSteps(_clipped(_schedule()), 2),
  "inject": _injected,
  "multi_steps_inject": lambda: optax.MultiSteps(_injected(), 2),
}
"""As Tunix's trainers wrap AdamW, by name."""

OTHER_OPTIMIZERS: dict[str, Callable[[], Any]] = {
  "sgd_momentum": lambda: optax.sgd(_schedule(), momentum=0.9),
  "clip_adam": lambda: optax.chain(
    optax.clip_by_global_norm(1.0), optax.adam(_schedule())
  ),
  "masked": lambda: optax.masked(optax.adamw(0.1), _is_matrix),
  "partition": lambda: optax.multi_transform(
    {True: optax.adamw(0.1), False: optax.sgd(0.1, momentum=0.5)}, _is_matrix
  ),
  "adafactor": lambda: optax.adafactor(0.01),
}
"""Optimizers that MaxText's layout has no names for."""


def _is_matrix(tree: Any) -> Any:
  return jax.tree.map(lambda leaf: leaf.ndim > 1, tree)


def build(
  seed: int,
  optimizer: str = "clip",
  *,
  scan: bool = False,
  axis: int = 1,
  adapter: bool = False,
) -> tuple[nnx.Module, nnx.Optimizer]:
  """Returns a model and its optimizer, before the first update."""
  model: nnx.Module = Model(seed, scan=scan, axis=axis)
  if adapter:
    model = Adapter(model)
  transform = (OPTIMIZERS | OTHER_OPTIMIZERS)[optimizer]()
  return model, nnx.Optimizer(model, transform, wrt=nnx.Param)


@nnx.jit
def _train_step(
  model: nnx.Module, optimizer: nnx.Optimizer, x: jax.Array
) -> jax.Array:
  loss, gradient = nnx.value_and_grad(lambda m: jnp.sum((m(x) - 1.0) ** 2))(
    model
  )
  optimizer.update(model, gradient)
  return loss


def train(
  model: nnx.Module, optimizer: nnx.Optimizer, steps: int, first: int = 0
) -> list[float]:
  """Trains with dropout on data that depends on the step; returns losses."""
  return [
    float(
      _train_step(
        model, optimizer, jnp.full((2, WIDTH), 0.1 * (step + 1), jnp.float32)
      )
    )
    for step in range(first, first + steps)
  ]


def values(node: nnx.Module) -> dict[str, np.ndarray]:
  """Returns copies of all arrays of a module, by name; keys as their words."""
  result = {}
  for path, variable in nnx.to_flat_state(nnx.state(node)):
    value = variable.get_value()
    if not jax.tree.leaves(value):
      continue  # left out by a mask
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
      value = jax.random.key_data(value)
    result[".".join(map(str, path))] = np.array(value)
  return result


def differences(
  a: dict[str, np.ndarray], b: dict[str, np.ndarray]
) -> list[str]:
  """Returns the names whose values are not the same, byte for byte."""
  return sorted(
    name
    for name in a.keys() | b.keys()
    if name not in a
    or name not in b
    or a[name].dtype != b[name].dtype
    or a[name].shape != b[name].shape
    or a[name].tobytes() != b[name].tobytes()
  )


def spread(node: nnx.Module, devices: int) -> None:
  """Shards every array of two axes or more along its first, on a new mesh."""
  mesh = jax.sharding.Mesh(np.array(jax.devices()[:devices]), ("x",))
  for _, variable in nnx.to_flat_state(nnx.state(node)):
    value = variable.get_value()
    spec = jax.sharding.PartitionSpec(*(["x"] if value.ndim > 1 else []))
    sharding = jax.sharding.NamedSharding(mesh, spec)
    variable.set_value(jax.device_put(value, sharding))


def shardings(node: nnx.Module) -> dict[str, jax.sharding.Sharding]:
  """Returns where each array lies, by name."""
  return {
    ".".join(map(str, path)): variable.get_value().sharding
    for path, variable in nnx.to_flat_state(nnx.state(node))
  }
