"""Clipping without a trace does what the chain does, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from relayout.errors import OptionError
from relayout.optimizers.clipping import add_gradient_clipping
from tests.support.optimizer_stacks import (
  BASES,
  PARAMS,
  Stack,
  gradients,
  schedule,
)

_STACKS = [
  *(Stack(base) for base in sorted(BASES)),
  Stack("adamw", (1,)),
  Stack("adamw", (3,)),
  Stack("adamw", ("inject",)),
  Stack("sgd", ("inject", 2)),
  Stack("adamw", (2, "inject", "clip")),
]


def _assert_same(left, right):
  assert jax.tree.structure(left) == jax.tree.structure(right)
  for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
    assert a.dtype == b.dtype
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _check_as_chain(inner, max_norm, num_steps=4, dtype=jnp.float32):
  """Checks states and updates of some steps against optax's chain."""
  params = jax.tree.map(lambda p: p.astype(dtype), PARAMS)
  made = add_gradient_clipping(inner, max_norm)
  chained = optax.chain(optax.clip_by_global_norm(max_norm), inner)
  state, want = made.init(params), chained.init(params)
  _assert_same(state, inner.init(params))
  step, chained_step = jax.jit(made.update), jax.jit(chained.update)
  for number in range(num_steps):
    grads = jax.tree.map(lambda g: g.astype(dtype), gradients(number))
    updates, state = step(grads, state, params)
    expected, want = chained_step(grads, want, params)
    _assert_same(updates, expected)
    _assert_same(state, want[1])


@pytest.mark.parametrize("stack", _STACKS, ids=str)
def test_as_the_chain(stack):
  _check_as_chain(stack.build(), 0.7, num_steps=2 * stack.every)


@pytest.mark.parametrize("max_norm", [1e-3, 1.0, 100.0, float("inf")])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_norms(max_norm, dtype):
  _check_as_chain(Stack("adamw").build(), max_norm, dtype=dtype)


def test_gradients_that_are_not_finite():
  inner = Stack("adamw").build()
  made = add_gradient_clipping(inner, 1.0)
  chained = optax.chain(optax.clip_by_global_norm(1.0), inner)
  grads = jax.tree.map(lambda p: p.at[0].set(jnp.nan), PARAMS)
  updates, _ = made.update(grads, made.init(PARAMS), PARAMS)
  want, _ = chained.update(grads, chained.init(PARAMS), PARAMS)
  _assert_same(updates, want)


class TestMultiSteps:
  """Clipping stands where it is put: around micro-steps, or in an update."""

  def test_around_clips_every_micro_step(self):
    steps = optax.MultiSteps(optax.sgd(1.0), 2)
    made = add_gradient_clipping(steps, 1.0)
    assert jax.tree.structure(made.init(PARAMS)) == jax.tree.structure(
      steps.init(PARAMS)
    )
    assert self._norm_of_update(made, (4.0, -1.0)) == 0.0

  def test_inside_clips_their_mean(self):
    inner = add_gradient_clipping(optax.sgd(1.0), 1.0)
    made = optax.MultiSteps(inner, 2).gradient_transformation()
    assert self._norm_of_update(made, (4.0, -1.0)) == pytest.approx(1.0)

  def test_skip_rule_sees_clipped_gradients(self):
    def skip_large(updates, gradient_step, params):
      return optax.skip_large_updates(
        updates, gradient_step, params, max_squared_norm=4.0
      )

    steps = optax.MultiSteps(
      optax.sgd(1.0), 2, should_skip_update_fn=skip_large
    )
    _check_as_chain(steps.gradient_transformation(), 1.0)
    made = add_gradient_clipping(steps, 1.0)
    assert self._norm_of_update(made, (100.0, 100.0)) == pytest.approx(1.0)

  def _norm_of_update(self, optimizer, sizes):
    """Returns the norm of the last update, of gradients of these sizes."""
    direction = jax.tree.map(jnp.ones_like, PARAMS)
    unit = optax.tree.scale(1 / optax.tree.norm(direction), direction)
    state = optimizer.init(PARAMS)
    updates = None
    for size in sizes:
      grads = optax.tree.scale(size, unit)
      updates, state = optimizer.update(grads, state, PARAMS)
    return float(optax.tree.norm(updates))


def _by_loss():
  """An optimizer whose updates are the loss, if it is told."""

  def update(updates, state, params=None, *, loss=0.0, **extra_args):
    del params, extra_args
    return jax.tree.map(lambda u: jnp.full_like(u, loss), updates), state

  return optax.GradientTransformationExtraArgs(optax.init_empty_state, update)


class TestExtraArguments:
  @pytest.mark.parametrize(
    "inner",
    [
      _by_loss(),
      optax.chain(optax.identity(), _by_loss()),
      optax.masked(_by_loss(), True),
      optax.MultiSteps(_by_loss(), 1),
      optax.MultiSteps(_by_loss(), 1).gradient_transformation(),
      add_gradient_clipping(_by_loss(), 3.0),
    ],
  )
  def test_reach_the_optimizer(self, inner):
    made = add_gradient_clipping(inner, 1.0)
    grads = gradients(0)
    updates, _ = made.update(grads, made.init(PARAMS), PARAMS, loss=2.5)
    assert all(np.all(leaf == 2.5) for leaf in jax.tree.leaves(updates))

  def test_are_kept_from_one_that_takes_none(self):
    made = add_gradient_clipping(optax.sgd(0.1), 1.0)
    made.update(gradients(0), made.init(PARAMS), PARAMS, loss=2.5)


def test_as_an_injected_hyperparameter():
  def factory(max_norm):
    return add_gradient_clipping(optax.sgd(schedule), max_norm)

  made = optax.inject_hyperparams(factory)(max_norm=0.25)
  state = made.init(PARAMS)
  updates, _ = jax.jit(made.update)(gradients(0), state, PARAMS)
  assert float(optax.tree.norm(updates)) == pytest.approx(0.25 * schedule(0))


def test_none_is_no_clipping():
  inner = Stack("adamw").build()
  assert add_gradient_clipping(inner, None) is inner


@pytest.mark.parametrize(
  "max_norm", [0, 0.0, -1.0, float("nan"), np.float32(0), jnp.array(-2.0)]
)
def test_norms_that_are_none(max_norm):
  with pytest.raises(OptionError, match=r"max_norm is .*Pass None"):
    add_gradient_clipping(optax.sgd(0.1), max_norm)
