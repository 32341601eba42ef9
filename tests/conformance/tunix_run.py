"""Small NNX models, saved by the released Tunix with real optax optimizers."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from flax import nnx
from tunix.sft import checkpoint_manager

SCHEDULE = optax.linear_schedule(1e-2, 1e-3, 10)


class Kernel(nnx.Module):
  """A weight called `kernel`."""

  def __init__(self, *shape: int, seed: int, dtype: Any = jnp.float32) -> None:
    key = jax.random.key(seed)
    self.kernel = nnx.Param(jax.random.normal(key, shape).astype(dtype))


class Attention(nnx.Module):
  """Has a child called `value`, as MaxText's has."""

  def __init__(self, seed: int, dtype: Any) -> None:
    for number, name in enumerate(("query", "key", "value")):
      setattr(self, name, Kernel(4, 2, 3, seed=seed + number, dtype=dtype))


class Layer(nnx.Module):
  """A layer, with a module that is really called `base`."""

  def __init__(self, seed: int, dtype: Any) -> None:
    self.self_attention = Attention(seed, dtype)
    self.base = Kernel(3, 4, seed=seed + 10, dtype=dtype)


class Decoder(nnx.Module):
  """Two layers, by name or in a list."""

  def __init__(self, dtype: Any, *, in_list: bool) -> None:
    layers = [Layer(100 * number, dtype) for number in range(2)]
    if in_list:
      self.layers = nnx.List(layers)
    else:
      self.layers_0, self.layers_1 = layers


class Model(nnx.Module):
  """A decoder and an embedding."""

  def __init__(
    self, dtype: Any = jnp.float32, *, in_list: bool = False
  ) -> None:
    self.decoder = Decoder(dtype, in_list=in_list)
    self.token_embedder = Kernel(5, 4, seed=7, dtype=dtype)


class Adapter(nnx.Module):
  """The wrapper that Tunix's DPO and RL need around a MaxText model."""

  def __init__(self, base: nnx.Module) -> None:
    self.base = base


def train(
  model: nnx.Module, transformation: optax.GradientTransformation, steps: int
) -> nnx.Optimizer:
  """Returns the optimizer after some steps with made-up gradients."""
  optimizer = nnx.Optimizer(model, transformation, wrt=nnx.Param)
  for number in range(steps):
    state = nnx.state(model, nnx.Param)
    gradients = jax.tree.map(lambda x, n=number: x * (n + 1) / 10, state)
    optimizer.update(model, gradients)
  return optimizer


def save(
  root: Path, step: int, model: nnx.Module, optimizer: nnx.Optimizer | None
) -> Path:
  """Saves with Tunix's own manager; returns the checkpoints directory."""
  manager = checkpoint_manager.CheckpointManager(
    str(root),
    ocp.CheckpointManagerOptions(enable_async_checkpointing=False),
  )
  assert manager.save(step, model, optimizer, force=True)
  manager.close()
  return root


def pure(tree: Any) -> Any:
  """Returns a tree with the values of its variables."""
  return jax.tree.map(
    lambda x: x[...] if isinstance(x, nnx.Variable) else x,
    tree,
    is_leaf=lambda x: isinstance(x, nnx.Variable),
  )


def flat(state: nnx.State) -> dict[str, jax.Array]:
  """Returns a state's arrays by dotted path."""
  paths = nnx.to_flat_state(state)
  return {".".join(map(str, path)): pure(value) for path, value in paths}


def find(tree: Any, kind: type) -> Any:
  """Returns the only node of a type in an optimizer's state, or None."""
  nodes = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, kind))
  found = [node for node in nodes if isinstance(node, kind)]
  assert len(found) < 2
  return found[0] if found else None
