"""Placing leaves inside wrappers: the inverse of taking these off."""

import pytest

from relayout.errors import LayoutError, OptionError
from relayout.layouts import tunix, wrappers
from relayout.layouts.state import Role, State, StateKey
from relayout.layouts.wrappers import Value, Wrappers, parse_wrappers
from relayout.metadata.item import Item, open_item
from relayout.tree.key_path import TypedPath, dotted
from tests.support import golden

_STEPS = [
  (name, str(item.parent.relative_to(golden.checkpoints(name))))
  for name in golden.TUNIX
  for item in sorted(golden.checkpoints(name).glob("**/optimizer_state"))
]
_W = ("decoder", "w")
_COUNTS = {Role.STEP, Role.COUNT, Role.SCHEDULE_COUNT}


def _open(name: str, step: str) -> tuple[Item, Item]:
  directory = golden.checkpoints(name) / step
  return (
    open_item(directory / "model_params"),
    open_item(directory / "optimizer_state"),
  )


def _trained(state: State) -> set[tuple[str, ...]]:
  return {key.path for key, _ in state.with_role(Role.MOMENT)}


def _extras(text: str, kind="adamw", adapter="") -> dict[str, Value]:
  found = wrappers.extra_leaves(kind, parse_wrappers(text), adapter, [_W])
  return {dotted(leaf.path.names): leaf.value for leaf in found}


def _name(key: StateKey, text: str, kind="adamw", adapter="") -> str:
  path = wrappers.place_in_optimizer(key, kind, parse_wrappers(text), adapter)
  return dotted(path.names)


def _placed(state: State) -> list[TypedPath]:
  """Returns every path of `optimizer_state`, by rules alone."""
  assert state.optimizer is not None
  names = Wrappers(state.wrappers)
  keys = {key for key in state.leaves if key.role in _COUNTS}
  keys |= {key for key, _ in state.with_role(Role.MOMENT)}
  keys.add(StateKey(Role.STEP))
  if state.schedule_count is not None:
    keys.add(StateKey(Role.SCHEDULE_COUNT))
  found = [
    wrappers.place_in_optimizer(key, state.optimizer, names, state.adapter)
    for key in keys
  ]
  extras = wrappers.extra_leaves(
    state.optimizer, names, state.adapter, _trained(state)
  )
  return found + [leaf.path for leaf in extras]


def test_every_golden_has_an_optimizer_state():
  assert {name for name, _ in _STEPS} == set(golden.TUNIX)


@pytest.mark.parametrize(("name", "step"), _STEPS)
class TestWhatTunixWroteIsPlacedWhereItWas:
  def test_model(self, name, step):
    model, _ = _open(name, step)
    state = tunix.read_state(model, None)
    placed = {
      wrappers.place_in_model(key, state.adapter): leaf.leaf.path
      for key, leaf in state.leaves.items()
    }
    assert placed
    assert all(want == got for want, got in placed.items())

  def test_optimizer(self, name, step):
    model, optimizer = _open(name, step)
    placed = _placed(tunix.read_state(model, optimizer))
    assert len(set(placed)) == len(placed)
    assert set(placed) == {leaf.path for leaf in optimizer.leaves}

  def test_moments_are_not_mixed_up(self, name, step):
    model, optimizer = _open(name, step)
    state = tunix.read_state(model, optimizer)
    for key, leaf in state.with_role(Role.MOMENT, Role.COUNT):
      path = wrappers.place_in_optimizer(
        key, state.optimizer, Wrappers(state.wrappers), state.adapter
      )
      assert path == leaf.leaf.path

  def test_types_and_values_of_what_wrappers_add(self, name, step):
    model, optimizer = _open(name, step)
    state = tunix.read_state(model, optimizer)
    assert state.optimizer is not None
    assert state.step is not None
    stored = {leaf.path: leaf for leaf in optimizer.leaves}
    for extra in wrappers.extra_leaves(
      state.optimizer, Wrappers(state.wrappers), state.adapter, _trained(state)
    ):
      leaf = stored[extra.path]
      assert leaf.spec is not None
      if extra.like is not None:
        like = state.leaves[extra.like].leaf.spec
        assert like is not None
        assert extra.value is Value.ZEROS_LIKE
        assert (leaf.spec.shape, leaf.spec.dtype) == (like.shape, like.dtype)
        continue
      assert (leaf.spec.shape, leaf.spec.dtype) == ((), extra.dtype)
      if extra.value is not Value.LEARNING_RATE:
        want = state.step.value if extra.value is Value.UPDATES else 0
        assert optimizer.read_small(leaf)[0] == want


@pytest.mark.parametrize(
  ("text", "names"),
  [
    ("none", ()),
    ("clip", ("chain",)),
    ("multi_steps,clip", ("MultiSteps", "chain")),
    (
      "multi_steps,inject_hyperparams,clip",
      ("MultiSteps", "inject_hyperparams", "chain"),
    ),
  ],
)
def test_parse(text, names):
  assert parse_wrappers(text) == Wrappers(names)
  assert str(Wrappers(names)) == text
  assert Wrappers(names).needs_learning_rate == ("inject" in text)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "'' is none of clip, inject_hyperparams, multi_steps"),
    ("clip,none", "'none' is none of"),
    ("clip, multi_steps", "' multi_steps' is none of"),
    ("chain", "outermost first"),
    ("clip,clip", "given twice"),
  ],
)
def test_parse_refuses(text, message):
  with pytest.raises(OptionError, match=message):
    parse_wrappers(text)


# No golden has these; a live GRPO trainer with micro-batches has the first.
@pytest.mark.parametrize(
  ("text", "kind", "prefix", "schedule"),
  [
    (
      "multi_steps,inject_hyperparams,clip",
      "adamw",
      "inner_opt_state.inner_state.1.0",
      "inner_opt_state.hyperparams_states.learning_rate",
    ),
    (
      "inject_hyperparams,multi_steps",
      "adamw",
      "inner_state.inner_opt_state.0",
      "hyperparams_states.learning_rate",
    ),
    ("multi_steps", "adamw", "inner_opt_state.0", "inner_opt_state.2"),
  ],
)
def test_nested_wrappers(text, kind, prefix, schedule):
  assert _name(StateKey(Role.COUNT), text, kind) == (
    f"opt_state.{prefix}.count.value"
  )
  assert _name(StateKey(Role.MOMENT, _W, "nu"), text, kind, "base") == (
    f"opt_state.{prefix}.nu.base.decoder.w.value"
  )
  assert _name(StateKey(Role.SCHEDULE_COUNT), text, kind) == (
    f"opt_state.{schedule}.count.value"
  )


def test_adam_pax_has_no_level_and_no_schedule():
  count, schedule = StateKey(Role.COUNT), StateKey(Role.SCHEDULE_COUNT)
  assert _name(count, "none", "adam_pax") == "opt_state.count.value"
  assert _name(count, "clip", "adam_pax") == "opt_state.1.count.value"
  with pytest.raises(LayoutError, match=r"schedule count.*adam_pax"):
    _name(schedule, "clip", "adam_pax")


def test_injection_around_adam_pax_adds_the_schedule():
  schedule = "opt_state.hyperparams_states.learning_rate.count.value"
  added = _extras("inject_hyperparams,clip", "adam_pax")
  assert added[schedule] is Value.UPDATES
  assert _extras("inject_hyperparams,clip").keys() == added.keys() - {schedule}


def test_extras_stand_at_their_wrapper():
  assert _extras("multi_steps,inject_hyperparams,clip", adapter="base") == {
    "opt_state.mini_step.value": Value.ZERO,
    "opt_state.gradient_step.value": Value.UPDATES,
    "opt_state.acc_grads.base.decoder.w.value": Value.ZEROS_LIKE,
    "opt_state.inner_opt_state.count.value": Value.UPDATES,
    "opt_state.inner_opt_state.hyperparams.learning_rate.value": (
      Value.LEARNING_RATE
    ),
  }
  assert _extras("clip") == _extras("none") == {}


def test_a_weight_has_no_place_among_the_moments():
  with pytest.raises(LayoutError, match=r"weight decoder\.w"):
    _name(StateKey(Role.WEIGHT, _W), "clip")
