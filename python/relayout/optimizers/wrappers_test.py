"""Stripping and restoring are inverse, and training goes on to the bit."""

import dataclasses
import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from relayout.errors import LayoutError, OptionError
from relayout.optimizers import nodes
from relayout.optimizers.wrappers import restore_wrappers, strip_wrappers
from tests.support.optimizer_stacks import (
  PARAMS,
  Stack,
  adam_pax,
  schedule,
  stacks,
  step_of,
  train,
)

_UPDATES = 2


def _trained(stack: Stack, updates: int = _UPDATES):
  optimizer, _ = step_of(stack)
  state = optimizer.init(PARAMS)
  return optimizer, *train(stack, PARAMS, state, range(updates * stack.every))


def _has_no_place(stack: Stack) -> bool:
  """Whether the schedule counts micro-steps, and the plain state updates."""
  return (
    stack.injects_around_accumulation
    and stack.every > 1
    and stack.base == "adam_pax"
  )


def assert_same(left, right):
  """Checks for equal structures, types and bits."""
  assert jax.tree.structure(left) == jax.tree.structure(right)
  for (path, a), b in zip(
    jax.tree.leaves_with_path(left), jax.tree.leaves(right), strict=True
  ):
    assert a.dtype == b.dtype, path
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), path


def _as_restored(state, like):
  """Returns `state` with what restoring does not bring back.

  Hyperparameters are those of `like`: a schedule sets them before they are
  used.  MultiSteps multiplies its gradients by zero, and leaves -0.0.
  """
  fresh = dict(jax.tree.leaves_with_path(like))

  def change(path, leaf):
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    if "hyperparams." in name:
      return fresh[path]
    return abs(leaf) if "acc_grads" in name else leaf

  return jax.tree.map_with_path(change, state)


@hypothesis.given(stacks())
@hypothesis.settings(max_examples=40, deadline=None)
def test_laws_of_any_nesting(stack):
  if _has_no_place(stack):
    with pytest.raises(LayoutError, match="a plain state keeps one number"):
      strip_wrappers(_trained(stack)[2])
    return
  optimizer, params, state = _trained(stack)
  stripped = strip_wrappers(state)
  _check_account(state, stripped)
  _check_is_plain(stack, stripped.state)
  like = optimizer.init(PARAMS)
  restored = restore_wrappers(stripped.state, like, num_updates=_UPDATES)
  assert_same(restored, _as_restored(state, like))
  _check_goes_on(stack, params, state, restored)


def _check_account(state, stripped):
  """Every leaf is in the plain state or among what was removed."""
  kept = [id(leaf) for leaf in jax.tree.leaves(stripped.state)]
  removed = [id(leaf) for leaf in stripped.removed.leaves.values()]
  given = [id(leaf) for leaf in jax.tree.leaves(state)]
  assert sorted(kept + removed) == sorted(given)
  for path, leaf in stripped.removed.leaves.items():
    assert nodes.find(state, path) is leaf


def _check_is_plain(stack, plain):
  """The state is the optimizer's alone; to strip it again changes nothing."""
  want = stack.plain().init(PARAMS)
  if stack.base == "flat_clip":
    want = want[1:]
  assert jax.tree.structure(plain) == jax.tree.structure(want)
  again = strip_wrappers(plain)
  assert_same(again.state, plain)
  assert not again.removed.leaves


def _check_goes_on(stack, params, state, restored):
  """Training goes on to the bit; no buffer is there twice, to be donated."""
  steps = range(100, 100 + 2 * stack.every)
  want = train(stack, params, state, steps)
  assert_same(train(stack, params, restored, steps), want)
  buffers = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(restored)]
  assert len(set(buffers)) == len(buffers)


def _plain_numbers():
  """As MaxText has it, restored without a target: a list and dicts."""
  return [
    {
      "count": np.int32(7),
      "mu": {"embed": {"w": np.full((2, 3), 2.0)}, "out": np.full(4, 3.0)},
      "nu": {"embed": {"w": np.full((2, 3), 4.0)}, "out": np.full(4, 5.0)},
    },
    None,
    {"count": np.int32(9)},
  ]


class TestAdamw:
  def test_what_maxtext_expects(self):
    stack = Stack("adamw", (2, "inject", "clip"))
    stripped = strip_wrappers(_trained(stack)[2])
    adam, decay, position = stripped.state
    assert type(adam) is optax.ScaleByAdamState
    assert decay == optax.EmptyState()
    assert type(position) is optax.ScaleByScheduleState
    assert int(adam.count) == int(position.count) == _UPDATES
    assert stripped.removed.wrappers == (
      "MultiSteps",
      "inject_hyperparams",
      "chain",
    )

  def test_position_of_the_schedule_is_its_own(self):
    """It is not the count of the optimizer, and goes where it came from."""
    like = Stack("adamw", ("inject", "clip")).build().init(PARAMS)
    restored = restore_wrappers(_plain_numbers(), like)
    assert int(restored.count) == 9
    assert int(restored.hyperparams_states["learning_rate"].count) == 9
    assert int(restored.inner_state[1][0].count) == 7
    assert restored.inner_state[1][0].mu["out"].tolist() == [3.0] * 4
    again = strip_wrappers(restored).state
    assert int(again[2].count) == 9

  def test_gradient_step_counts_updates(self):
    like = Stack("adamw", (4, "inject", "clip")).build().init(PARAMS)
    restored = restore_wrappers(_plain_numbers(), like)
    assert (int(restored.gradient_step), int(restored.mini_step)) == (7, 0)
    assert not any(map(np.any, jax.tree.leaves(restored.acc_grads)))

  def test_schedule_around_accumulation_counts_micro_steps(self):
    _, _, state = _trained(Stack("adamw", ("inject", 3)))
    plain = strip_wrappers(state).state
    assert int(plain[2].count) == 3 * int(plain[0].count)

  def test_the_rate_of_the_new_optimizer_stays(self):
    like = Stack("adamw", ("inject",)).build().init(PARAMS)
    restored = restore_wrappers(_plain_numbers(), like)
    assert restored.hyperparams == like.hyperparams

  def test_traced_and_abstract_states(self):
    stack = Stack("adamw", (2, "inject", "clip"))
    optimizer, _, state = _trained(stack)
    want = strip_wrappers(state).state
    assert_same(jax.jit(lambda s: strip_wrappers(s).state)(state), want)
    abstract = jax.eval_shape(lambda: state)
    stripped = strip_wrappers(abstract).state
    assert jax.tree.structure(stripped) == jax.tree.structure(want)
    like = jax.eval_shape(optimizer.init, PARAMS)
    restored = restore_wrappers(stripped, like)
    assert jax.tree.structure(restored) == jax.tree.structure(state)


class TestRefusals:
  def _state(self):
    stack = Stack("adamw", (3,))
    return train(stack, PARAMS, stack.build().init(PARAMS), range(4))[1]

  def test_unfinished_accumulation(self):
    with pytest.raises(OptionError, match=r"mini_step is 1.*drop_accumulated"):
      strip_wrappers(self._state())

  def test_unfinished_accumulation_is_dropped_on_request(self):
    state = self._state()
    stripped = strip_wrappers(state, drop_accumulated=True)
    assert int(stripped.removed.leaves["mini_step",]) == 1
    lost = stripped.removed.leaves["acc_grads", "out"]
    assert lost is state.acc_grads["out"]
    assert np.any(lost)

  def test_position_that_has_no_place(self):
    _, _, state = _trained(Stack("adam_pax", ("inject", 2)))
    with pytest.raises(LayoutError, match=r"learning_rate\.count is 4.*2"):
      strip_wrappers(state)

  def test_nothing_counts_updates(self):
    stack = Stack("sgd", (2,), has_schedule=False)
    optimizer, _, state = _trained(stack)
    plain = strip_wrappers(state).state
    with pytest.raises(LayoutError, match="num_updates"):
      restore_wrappers(plain, optimizer.init(PARAMS))

  def test_accumulation_in_accumulation(self):
    state = optax.MultiSteps(
      optax.MultiSteps(adam_pax(0.1), 2).gradient_transformation(), 2
    ).init(PARAMS)
    with pytest.raises(LayoutError, match="MultiSteps inside MultiSteps"):
      strip_wrappers(state)

  def test_two_positions(self):
    made = optax.inject_hyperparams(optax.adamw)(
      learning_rate=schedule, weight_decay=schedule
    )
    state = made.init(PARAMS)
    moved = state.hyperparams_states | {
      "weight_decay": state.hyperparams_states["weight_decay"]._replace(
        count=jnp.int32(5)
      )
    }
    with pytest.raises(LayoutError, match=r"weight_decay\.count is 5.* at 0"):
      strip_wrappers(state._replace(hyperparams_states=moved))

  @pytest.mark.parametrize(
    ("change", "message"),
    [
      (lambda p: p[0]["mu"].pop("out"), r"0\.mu\.out: missing"),
      (lambda p: p[0].update(mu=np.zeros(2)), r"0\.mu: a single array"),
      (lambda p: p[0]["mu"].update(more=np.zeros(2)), r"mu\.more: .* no such"),
      (lambda p: p[0]["mu"].update(out=np.zeros(5)), r"\(5,\).* \(4,\)"),
      (lambda p: p.append({"ema": np.zeros(5)}), r"3: .* ema"),
      (lambda p: p.pop(), "position of the learning-rate schedule"),
    ],
  )
  def test_a_state_that_does_not_fit(self, change, message):
    plain = _plain_numbers()
    change(plain)
    like = Stack("adamw", (2, "inject", "clip")).build().init(PARAMS)
    with pytest.raises(LayoutError, match=message):
      restore_wrappers(plain, like)

  @pytest.mark.parametrize("wrappers", [(), ("clip",), (2, "clip")])
  def test_a_schedule_that_the_target_has_not(self, wrappers):
    like = Stack("adamw", wrappers, has_schedule=False).build().init(PARAMS)
    with pytest.raises(LayoutError, match="count"):
      restore_wrappers(_plain_numbers(), like)


class _Model(nnx.Module):
  def __init__(self, rngs):
    self.inner = nnx.Linear(2, 3, rngs=rngs)
    self.layers = nnx.List([nnx.Linear(3, 3, rngs=rngs) for _ in range(2)])


@functools.cache
def _nnx_optimizer(stack: Stack, *, num_steps: int):
  model = _Model(nnx.Rngs(0))
  optimizer = nnx.Optimizer(model, stack.build(), wrt=nnx.Param)
  grads = jax.tree.map(jnp.cos, nnx.state(model, nnx.Param))
  update = nnx.jit(lambda optimizer, model: optimizer.update(model, grads))
  for _ in range(num_steps):
    update(optimizer, model)
  return optimizer


_TUNIX = [
  Stack("adamw", ("clip",)),
  Stack("adamw", ("clip",), has_schedule=False),
  Stack("adamw", (1, "clip")),
  Stack("adamw", ("inject", "clip")),
  Stack("adamw", (2, "inject", "clip")),
  Stack("adam_pax", ("clip",)),
  Stack("adam_pax", (2, "inject", "clip")),
]


@pytest.mark.parametrize("stack", _TUNIX, ids=str)
class TestVariables:
  """The optimizers of `nnx`, which Tunix trains with."""

  def test_live_variables(self, stack):
    trained = _nnx_optimizer(stack, num_steps=4).opt_state
    like = _nnx_optimizer(stack, num_steps=0).opt_state
    self._check(trained, like)

  def test_state(self, stack):
    trained, like = (
      nnx.state(_nnx_optimizer(stack, num_steps=n), nnx.optimizer.OptState)
      for n in (4, 0)
    )
    self._check(trained["opt_state"], like["opt_state"])

  def test_state_of_pure_dicts(self, stack):
    trained, like = (
      nnx.to_pure_dict(
        nnx.state(_nnx_optimizer(stack, num_steps=n), nnx.optimizer.OptState)
      )
      for n in (4, 0)
    )
    self._check(trained["opt_state"], like["opt_state"])

  def _check(self, trained, like):
    plain = strip_wrappers(trained).state
    restored = restore_wrappers(plain, like)
    assert_same(restored, _as_restored(trained, like))


def test_state_of_variables_becomes_a_list_of_members():
  stack = Stack("adamw", (2, "inject", "clip"))
  optimizer = _nnx_optimizer(stack, num_steps=4)
  state = nnx.state(optimizer, nnx.optimizer.OptState)["opt_state"]
  plain = strip_wrappers(state).state
  members = nodes.children(plain)
  assert members.keys() == {"0", "2"}
  assert nodes.find(plain, ("2", "count")).get_value() == 2
  assert dataclasses.is_dataclass(strip_wrappers(state))
