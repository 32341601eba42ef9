"""Optimizers that take extra arguments."""

import optax

type Optimizer = optax.GradientTransformation | optax.MultiSteps


def with_extra_args(
  optimizer: Optimizer,
) -> optax.GradientTransformationExtraArgs:
  """Returns `optimizer` as one that takes extra arguments.

  As `optax.with_extra_args_support`, but `MultiSteps` hands them on to what is
  inside it, as it does when called itself: a chain would keep them from it.
  """
  if _is_multi_steps(optimizer):
    return optax.GradientTransformationExtraArgs(
      optimizer.init, optimizer.update
    )
  return optax.with_extra_args_support(optimizer)


def _is_multi_steps(optimizer: Optimizer) -> bool:
  owner = getattr(optimizer.update, "__self__", None)
  return isinstance(owner, optax.MultiSteps)
