"""Values of leaves, which are arrays or variables of `nnx`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def value_of(leaf: Any) -> Any:
  """Returns the array that a leaf is or holds."""
  return leaf.get_value() if isinstance(leaf, nnx.Variable) else leaf


def known_int(leaf: Any) -> int | None:
  """Returns a counter as a number; None if it is traced or abstract."""
  value = value_of(leaf)
  if isinstance(value, jax.core.Tracer):
    return None
  if isinstance(value, int | np.ndarray | np.integer | jax.Array):
    return int(value)
  return None


def holding(like: Any, leaf: Any) -> Any:
  """Returns `leaf`'s value in a variable like `like`, if that is one."""
  value = value_of(leaf)
  return like.replace(value) if isinstance(like, nnx.Variable) else value


def counter(like: Any, leaf: Any) -> Any:
  """Returns a counter of `like`'s kind and type with a copy of `leaf`'s value.

  A copy, because a step that donates its state must not be given one buffer
  twice.
  """
  value, wanted = value_of(leaf), value_of(like)
  dtype = getattr(wanted, "dtype", None)
  if isinstance(value, int | np.ndarray | np.integer | jax.Array):
    value = jnp.array(value, dtype=dtype, copy=True)
  return holding(like, value)


def zeros(like: Any) -> Any:
  """Returns zeros of `like`'s kind, shape and type; abstract if it is."""
  wanted = value_of(like)
  if not isinstance(wanted, np.ndarray | jax.Array):
    return like
  return holding(like, jnp.zeros_like(wanted))
