"""With the optimizer of MaxText 0.2.5 that skips steps on spikes."""

import jax
import numpy as np
import optax
import pytest
from maxtext.optimizers import optimizers

from relayout.optimizers.accumulation import accumulate_gradients
from relayout.optimizers.clipping import add_gradient_clipping
from relayout.optimizers.wrappers import restore_wrappers, strip_wrappers
from tests.support.optimizer_stacks import PARAMS, gradients, schedule

_MAX_NORM = 0.7
_LOSSES = (1.0, 1.1, 0.9, 1.0, 50.0, 1.0)
_SPIKE = _LOSSES.index(50.0)


def _skipping(rate=schedule):
  return optimizers.skip_step_on_spikes(
    optax.adamw(rate), interval=8, scaling_factor=6.0
  )


def _run(optimizer, state, losses=_LOSSES):
  """Yields updates and the state after each step."""
  step = jax.jit(optimizer.update)
  for number, loss in enumerate(losses):
    grads = gradients(number)
    updates, state = step(
      grads, state, PARAMS, loss=loss, grad_norm=optax.tree.norm(grads)
    )
    yield updates, state


def _assert_same(left, right):
  assert jax.tree.structure(left) == jax.tree.structure(right)
  jax.tree.map(np.testing.assert_array_equal, left, right)


def test_clipping_is_that_of_the_chain():
  made = add_gradient_clipping(_skipping(), _MAX_NORM)
  chained = optax.chain(optax.clip_by_global_norm(_MAX_NORM), _skipping())
  state = made.init(PARAMS)
  _assert_same(state, _skipping().init(PARAMS))
  found = list(_run(made, state))
  wanted = list(_run(chained, chained.init(PARAMS)))
  for (updates, state), (expected, want) in zip(found, wanted, strict=True):
    _assert_same(updates, expected)
    _assert_same(state, want[1])
  assert [bool(state["is_skipped"]) for _, state in found] == [
    number == _SPIKE for number in range(len(_LOSSES))
  ]


def test_skips_micro_steps_inside_accumulation():
  made = accumulate_gradients(_skipping(), 1)
  assert set(made.init(PARAMS)) == set(_skipping().init(PARAMS))
  accumulated = accumulate_gradients(_skipping(), 2)
  *_, (_, state) = _run(accumulated, accumulated.init(PARAMS))
  assert int(state.gradient_step) == len(_LOSSES) // 2
  assert int(state.inner_opt_state["count"]) == len(_LOSSES) // 2


@pytest.mark.parametrize("is_injected", [True, False])
def test_its_history_is_the_optimizers_own(is_injected):
  def factory(learning_rate):
    clip = optax.clip_by_global_norm(_MAX_NORM)
    return optax.chain(clip, _skipping(learning_rate))

  optimizer = factory(schedule)
  if is_injected:
    optimizer = optax.inject_hyperparams(factory)(learning_rate=schedule)
  *_, (_, state) = _run(optimizer, optimizer.init(PARAMS))
  plain = strip_wrappers(state).state
  want = _skipping().init(PARAMS)
  assert jax.tree.structure(plain) == jax.tree.structure(want)
  adam, _, position = plain["inner_state"]
  # The schedule of an injected rate goes on while the optimizer skips a step.
  assert int(adam.count) == len(_LOSSES) - 1
  assert int(position.count) == len(_LOSSES) - (not is_injected)
  restored = restore_wrappers(plain, optimizer.init(PARAMS))
  for (updates, _), (expected, _) in zip(
    _run(optimizer, restored), _run(optimizer, state), strict=True
  ):
    _assert_same(updates, expected)
