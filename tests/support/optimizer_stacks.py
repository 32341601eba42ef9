"""Optimizers in wrappers, in any order."""

import dataclasses
import functools
from collections.abc import Callable

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import optax

PARAMS = {
  "embed": {"w": jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)},
  "out": jnp.linspace(0.0, 2.0, 4),
}


def schedule(count):
  return 0.1 / (1.0 + count)


def adam_pax(learning_rate):
  """One flat state that has the schedule's position in its only count."""

  def init(params):
    return optax.scale_by_adam().init(params)

  def update(updates, state, params=None):
    del params
    rate = (
      learning_rate(state.count) if callable(learning_rate) else (learning_rate)
    )
    updates, state = optax.scale_by_adam().update(updates, state)
    return jax.tree.map(lambda u: -rate * u, updates), state

  return optax.GradientTransformation(init, update)


def _is_matrix(params):
  return jax.tree.map(lambda p: p.ndim == 2, params)


def _labels(params):
  return jax.tree.map(lambda p: "train" if p.ndim == 2 else "freeze", params)


BASES: dict[str, Callable[..., optax.GradientTransformation]] = {
  "adamw": optax.adamw,
  "adam": optax.adam,
  "adam_pax": adam_pax,
  "sgd": lambda rate: optax.sgd(rate, momentum=0.9),
  "flat_clip": lambda rate: optax.chain(
    optax.clip_by_global_norm(0.5),
    optax.scale_by_adam(),
    optax.scale_by_learning_rate(rate),
  ),
  "masked": lambda rate: optax.masked(optax.adamw(rate), _is_matrix),
  "multi_transform": lambda rate: optax.multi_transform(
    {"train": optax.adamw(rate), "freeze": optax.set_to_zero()}, _labels
  ),
}


@dataclasses.dataclass(frozen=True)
class Stack:
  """An optimizer in wrappers.

  Attributes:
    base: Name in `BASES`.
    wrappers: `clip`, `inject`, or a number: micro-steps of `MultiSteps`;
      outermost first.
    has_schedule: Whether the learning rate follows a schedule.
  """

  base: str
  wrappers: tuple[str | int, ...] = ()
  has_schedule: bool = True

  @property
  def every(self) -> int:
    """How many micro-steps make an update."""
    return next((w for w in self.wrappers if isinstance(w, int)), 1)

  @property
  def injects_around_accumulation(self) -> bool:
    numbers = [i for i, w in enumerate(self.wrappers) if isinstance(w, int)]
    return (
      "inject" in self.wrappers
      and bool(numbers)
      and self.wrappers.index("inject") < numbers[0]
    )

  def build(self) -> optax.GradientTransformationExtraArgs:
    rate = schedule if self.has_schedule else 0.05
    made = _build(self.base, self.wrappers, rate)
    return optax.with_extra_args_support(made)

  def plain(self) -> optax.GradientTransformation:
    """The optimizer alone, as a trainer without wrappers has it."""
    injected = "inject" in self.wrappers
    rate = schedule if self.has_schedule or injected else 0.05
    return BASES[self.base](rate)


def _build(base, wrappers, rate):
  if not wrappers:
    return BASES[base](rate)
  first, *rest = wrappers
  if first == "inject":
    factory = optax.inject_hyperparams(
      lambda learning_rate: _build(base, rest, learning_rate)
    )
    return factory(learning_rate=rate)
  inner = _build(base, rest, rate)
  if first == "clip":
    return optax.chain(optax.clip_by_global_norm(0.5), inner)
  return optax.MultiSteps(inner, first).gradient_transformation()


def stacks() -> st.SearchStrategy[Stack]:
  """Any optimizer in up to four wrappers, at most one of each but clipping."""
  known = st.sampled_from(["clip", "inject", 1, 2, 3])

  def num_of(found, kind):
    return sum(kind is type(w) or kind == w for w in found)

  some = st.lists(known, max_size=4).filter(
    lambda found: num_of(found, "inject") < 2 and num_of(found, int) < 2
  )
  return st.builds(
    Stack, st.sampled_from(sorted(BASES)), some.map(tuple), st.booleans()
  )


def gradients(step: int):
  """Returns gradients that differ from one step to the next."""
  return jax.tree.map(lambda p: jnp.cos(p * (3 + step)), PARAMS)


@functools.cache
def step_of(stack: Stack):
  """Returns the optimizer of a stack, and its compiled step."""
  optimizer = stack.build()

  @jax.jit
  def step(grads, state, params):
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state

  return optimizer, step


def train(stack: Stack, params, state, steps):
  """Returns the parameters and the state after `steps`."""
  _, step = step_of(stack)
  for number in steps:
    params, state = step(gradients(number), state, params)
  return params, state
