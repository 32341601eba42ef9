"""Gradient accumulation, where there is something to accumulate."""

import operator
from typing import Any

import jax
import jax.numpy as jnp
import optax

from relayout.errors import OptionError
from relayout.optimizers.extra_args import with_extra_args


def accumulate_gradients(
  optimizer: optax.GradientTransformation,
  gradient_accumulation_steps: int | None,
  *,
  use_grad_mean: bool = True,
  should_skip_update_fn: Any = None,
  accumulator_dtype: jax.typing.DTypeLike = jnp.float32,
) -> optax.GradientTransformationExtraArgs:
  """Returns `optimizer`, updating once in so many steps.

  For a single step there is no `optax.MultiSteps`: it would nest the state, and
  keep gradients as large as the model, to do nothing.

  Args:
    optimizer: Gets the mean of the gradients; extra arguments reach it.
    gradient_accumulation_steps: How many micro-steps make an update; None, 0
      and 1 all mean that each step is one.
    use_grad_mean: False for the sum.
    should_skip_update_fn: As of `optax.MultiSteps`.  It needs the wrapper, so
      with one the state is nested for a single step, too.
    accumulator_dtype: Of the accumulated gradients.

  Raises:
    OptionError: If the number is negative, or none.
  """
  steps = _checked(gradient_accumulation_steps)
  if steps < 2 and should_skip_update_fn is None:
    return with_extra_args(optimizer)
  return with_extra_args(
    optax.MultiSteps(
      with_extra_args(optimizer),
      max(steps, 1),
      use_grad_mean=use_grad_mean,
      should_skip_update_fn=should_skip_update_fn,
      accumulator_dtype=accumulator_dtype,
    )
  )


def _checked(steps: int | None) -> int:
  if steps is None:
    return 0
  try:
    number = operator.index(steps)
  except TypeError:
    number = -1
  if number < 0:
    raise OptionError(
      f"gradient_accumulation_steps is {steps!r}: pass the number of "
      "micro-steps that make an update, or None for no accumulation"
    )
  return number
