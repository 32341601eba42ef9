"""What optax does to the types of moments, and what it does not here."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from relayout.optimizers.preserve_dtypes import preserve_dtypes
from tests.support.optimizer_stacks import PARAMS, gradients, schedule

_BFLOAT16 = jax.tree.map(lambda p: p.astype(jnp.bfloat16), PARAMS)

_MADE = {
  "adamw": optax.adamw(schedule),
  "mu_dtype": optax.adamw(schedule, mu_dtype=jnp.float32),
  "sgd": optax.sgd(schedule, momentum=0.9),
  "lion": optax.lion(schedule),
  "inject": optax.inject_hyperparams(optax.adamw)(learning_rate=schedule),
  "float32_rates": optax.inject_hyperparams(
    optax.adamw, hyperparam_dtype=jnp.float32
  )(learning_rate=schedule),
  "accumulated": optax.MultiSteps(
    optax.adamw(schedule), 1
  ).gradient_transformation(),
}
_PROMOTED = {
  "float32": {"adamw", "sgd", "lion", "inject", "float32_rates"},
  "bfloat16": {"float32_rates"},
}


def _dtypes(state):
  return [leaf.dtype for leaf in jax.tree.leaves(state)]


def _updated(optimizer, dtype):
  grads = jax.tree.map(lambda g: g.astype(dtype), gradients(0))
  state = optimizer.init(_BFLOAT16)
  return state, *optimizer.update(grads, state, _BFLOAT16)


def _assert_rounded(got, exact):
  """Compares bits: bfloat16 decay rates, as injected, make NaNs of updates."""
  rounded = exact.astype(got.dtype)
  assert np.asarray(got).tobytes() == np.asarray(rounded).tobytes()


@pytest.mark.parametrize("dtype", sorted(_PROMOTED))
@pytest.mark.parametrize("name", sorted(_MADE))
class TestParametersInBfloat16:
  def test_what_optax_promotes(self, name, dtype):
    """If this changes with a release of optax, so may the docstring."""
    before, _, after = _updated(_MADE[name], dtype)
    promoted = _dtypes(before) != _dtypes(after)
    assert promoted == (name in _PROMOTED[dtype])

  def test_types_are_kept(self, name, dtype):
    before, updates, after = _updated(preserve_dtypes(_MADE[name]), dtype)
    assert _dtypes(before) == _dtypes(after)
    _, expected, want = _updated(_MADE[name], dtype)
    for got, exact in ((updates, expected), (after, want)):
      jax.tree.map(_assert_rounded, got, exact)
    assert _dtypes(updates) == _dtypes(expected)


def test_a_step_is_compiled_once():
  optimizer = preserve_dtypes(_MADE["adamw"])
  step = jax.jit(optimizer.update)
  state = optimizer.init(_BFLOAT16)
  for number in range(3):
    _, state = step(gradients(number), state, _BFLOAT16)
  assert step._cache_size() == 1
