"""Optimizers whose states keep their data types."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from relayout.optimizers.extra_args import Optimizer, with_extra_args


def preserve_dtypes(
  optimizer: Optimizer,
) -> optax.GradientTransformationExtraArgs:
  """Returns `optimizer` with a state that keeps the types of its `init`.

  Optax 0.2.8 stores some moments in the wider type of moment and gradient.
  With bfloat16 parameters, `mu` of Adam, and momentum, become float32 at the
  first update if gradients are float32, or the hyperparameters that
  `inject_hyperparams` sets.  The state then has types that no fresh one has,
  so a step is compiled again, and does not fit a checkpoint of the others.
  Here each leaf is rounded to the type that it had before the update.  The
  updates themselves are not rounded.
  """
  inner = with_extra_args(optimizer)

  def update(
    updates: optax.Updates,
    state: optax.OptState,
    params: optax.Params | None = None,
    **extra_args: Any,
  ) -> tuple[optax.Updates, optax.OptState]:
    updates, new_state = inner.update(updates, state, params, **extra_args)
    return updates, jax.tree.map(_as_before, state, new_state)

  return optax.GradientTransformationExtraArgs(inner.init, update)


def _as_before(old: Any, new: Any) -> Any:
  return jnp.astype(new, jnp.result_type(old))
