"""Which leaves belong together."""

from relayout.layouts.state import Role, State, StateKey
from relayout.verify.matching import match

_BIAS = ("decoder", "layers_0", "mlp", "MoeBlock_0", "gate", "bias")


def _weight(*path):
  return StateKey(Role.WEIGHT, path)


def _match(source, target):
  """Matches leaves that are named by strings."""
  return match(
    State(leaves=source, optimizer="adamw", step=None),
    State(leaves=target, optimizer="adamw", step=None),
  )


def _layers(count, name="kernel"):
  return {
    _weight("decoder", f"layers_{i}", name): f"{name} {i}" for i in range(count)
  }


def test_layers_are_in_the_order_of_numbers_not_of_names():
  found = _match(_layers(12), {_weight("decoder", "layers", "kernel"): "stack"})
  [comparison] = found.comparisons
  assert comparison.sources == tuple(f"kernel {i}" for i in range(12))
  assert comparison.layers == tuple(range(12))
  assert not comparison.missing_layers
  assert not found.rest


def test_a_leaf_that_only_some_layers_have():
  source = _layers(4) | _layers(2, "bias")
  target = {
    _weight("decoder", "layers", "kernel"): "k",
    _weight("decoder", "layers", "bias"): "b",
  }
  kernel, bias = _match(source, target).comparisons
  assert kernel.missing_layers == ()
  assert bias.missing_layers == (2, 3)


def test_a_stack_of_one_layer_is_a_stack():
  found = _match(_layers(1), {_weight("decoder", "layers", "kernel"): "s"})
  assert found.comparisons[0].layers == (0,)


def test_what_has_no_counterpart_on_either_side():
  found = _match(
    {_weight("a"): "a", _weight("b"): "b"},
    {_weight("b"): "B", _weight("c"): "C"},
  )
  assert [c.sources for c in found.comparisons] == [("b",)]
  assert found.rest == {_weight("a"): "a"}
  assert found.extra == ((_weight("c"), "C"),)


def test_a_variable_that_is_no_weight_may_stand_in_params():
  source = {StateKey(Role.AUXILIARY, _BIAS): "bias"}
  assert _match(source, {_weight(*_BIAS): "w"}).comparisons
  assert _match(source, {StateKey(Role.AUXILIARY, _BIAS): "a"}).comparisons


def test_a_weight_may_not_stand_among_other_variables():
  found = _match({_weight(*_BIAS): "w"}, {StateKey(Role.AUXILIARY, _BIAS): "a"})
  assert not found.comparisons
  assert found.extra
  assert found.rest


def test_moments_of_another_slot_do_not_match():
  mu, nu = (StateKey(Role.MOMENT, ("w",), slot) for slot in ("mu", "nu"))
  found = _match({mu: "m"}, {nu: "n"})
  assert not found.comparisons


def test_counters_wait_for_a_rule():
  step = StateKey(Role.STEP)
  assert _match({}, {step: "s"}).counters == {step: "s"}
