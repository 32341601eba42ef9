"""Gradient clipping that leaves no trace in the optimizer's state."""

import math
from typing import Any

import jax
import optax

from relayout.errors import OptionError
from relayout.optimizers.extra_args import Optimizer, with_extra_args


def add_gradient_clipping(
  optimizer: Optimizer, max_norm: float | jax.Array | None
) -> optax.GradientTransformationExtraArgs:
  """Returns `optimizer` with its gradients clipped by their global norm.

  The updates are, to the bit, those of

      optax.chain(optax.clip_by_global_norm(max_norm), optimizer)

  but the state is the optimizer's own, without the chain around it.  So a
  checkpoint is the same with clipping and without.

  What is given sees clipped gradients.  Given `MultiSteps`, that is the
  gradient of each micro-step, and a `should_skip_update_fn` gets clipped ones;
  to clip the mean of the micro-steps, clip what `MultiSteps` is given.  Given
  `optax.masked` or `optax.multi_transform`, the norm is that of all gradients,
  of frozen parameters too.

  Args:
    optimizer: Any, and what it wraps; extra arguments reach it.
    max_norm: Largest norm that is let through; None: no clipping.

  Raises:
    OptionError: If `max_norm` is zero, negative or NaN.
  """
  inner = with_extra_args(optimizer)
  if max_norm is None:
    return inner
  _check(max_norm)
  clip = optax.clip_by_global_norm(max_norm)

  def update(
    updates: optax.Updates,
    state: optax.OptState,
    params: optax.Params | None = None,
    **extra_args: Any,
  ) -> tuple[optax.Updates, optax.OptState]:
    clipped, _ = clip.update(updates, optax.EmptyState(), params)
    result: tuple[optax.Updates, optax.OptState] = inner.update(
      clipped, state, params, **extra_args
    )
    return result

  return optax.GradientTransformationExtraArgs(inner.init, update)


def _check(max_norm: float | jax.Array) -> None:
  """Checks a norm, unless it is a traced hyperparameter."""
  if isinstance(max_norm, jax.core.Tracer):
    return
  if math.isnan(max_norm) or max_norm <= 0:
    raise OptionError(
      f"max_norm is {max_norm}: a norm to clip by is greater than 0. Pass None "
      "for no clipping, which is what 0 means as MaxText's "
      "gradient_clipping_threshold"
    )
