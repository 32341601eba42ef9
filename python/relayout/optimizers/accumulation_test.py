"""Accumulation leaves no trace where there is nothing to accumulate."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from relayout.errors import OptionError
from relayout.optimizers.accumulation import accumulate_gradients
from tests.support.optimizer_stacks import BASES, PARAMS, Stack, gradients


def _mean_gradients(steps):
  total = jax.tree.map(lambda *g: sum(g), *map(gradients, steps))
  return optax.tree.scale(1 / len(steps), total)


@pytest.mark.parametrize("steps", [None, 0, 1, np.int64(1)])
@pytest.mark.parametrize("base", sorted(BASES))
def test_a_single_step_keeps_the_state_plain(base, steps):
  plain = Stack(base).build()
  made = accumulate_gradients(plain, steps)
  assert jax.tree.structure(made.init(PARAMS)) == jax.tree.structure(
    plain.init(PARAMS)
  )
  assert made is plain


@pytest.mark.parametrize("base", ["adamw", "sgd", "adam_pax", "flat_clip"])
def test_as_one_large_batch(base):
  plain = Stack(base).build()
  made = accumulate_gradients(plain, 4)
  state, want = made.init(PARAMS), plain.init(PARAMS)
  update = jax.jit(made.update)
  for start in (0, 4):
    for number in range(start, start + 4):
      updates, state = update(gradients(number), state, PARAMS)
    large = _mean_gradients(range(start, start + 4))
    expected, want = plain.update(large, want, PARAMS)
    for found, wanted in (
      (updates, expected),
      (state.inner_opt_state, want),
    ):
      # The mean of means is summed in another order than the whole batch.
      jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6),
        found,
        wanted,
      )
  assert int(state.gradient_step) == 2


def test_nothing_is_updated_between():
  made = accumulate_gradients(optax.sgd(1.0), 3)
  updates, state = made.update(gradients(0), made.init(PARAMS), PARAMS)
  assert not any(map(np.any, jax.tree.leaves(updates)))
  assert int(state.mini_step) == 1


def test_a_sum_of_gradients():
  made = accumulate_gradients(optax.sgd(1.0), 2, use_grad_mean=False)
  state = made.init(PARAMS)
  for number in range(2):
    updates, state = made.update(gradients(number), state, PARAMS)
  want = jax.tree.map(lambda a, b: -(a + b), gradients(0), gradients(1))
  jax.tree.map(np.testing.assert_array_equal, updates, want)


def test_type_of_accumulated_gradients():
  made = accumulate_gradients(optax.sgd(1.0), 2, accumulator_dtype=jnp.bfloat16)
  grads = made.init(PARAMS).acc_grads
  assert all(g.dtype == jnp.bfloat16 for g in jax.tree.leaves(grads))


def test_a_skip_rule_needs_the_wrapper_for_a_single_step_too():
  made = accumulate_gradients(
    optax.sgd(1.0), 1, should_skip_update_fn=optax.skip_not_finite
  )
  state = made.init(PARAMS)
  assert type(state) is optax.MultiStepsState
  bad = jax.tree.map(lambda p: p * jnp.nan, PARAMS)
  updates, state = made.update(bad, state, PARAMS)
  assert not any(map(np.any, jax.tree.leaves(updates)))
  assert bool(state.skip_state["should_skip"])


@pytest.mark.parametrize("steps", [1, 2])
def test_extra_arguments_reach_the_optimizer(steps):
  def update(updates, state, params=None, *, loss, **extra_args):
    del params, extra_args
    return jax.tree.map(lambda u: jnp.full_like(u, loss), updates), state

  inner = optax.GradientTransformationExtraArgs(optax.init_empty_state, update)
  made = accumulate_gradients(inner, steps)
  state = made.init(PARAMS)
  for _ in range(steps):
    updates, state = made.update(gradients(0), state, PARAMS, loss=2.5)
  assert all(np.all(leaf == 2.5) for leaf in jax.tree.leaves(updates))


@pytest.mark.parametrize("steps", [-1, 1.5, "4"])
def test_what_is_no_number_of_steps(steps):
  with pytest.raises(OptionError, match="gradient_accumulation_steps is"):
    accumulate_gradients(optax.sgd(0.1), steps)
