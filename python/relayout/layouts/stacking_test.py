"""Layer names and flat stacks."""

import pytest

from relayout.errors import LayoutError
from relayout.layouts import stacking
from relayout.layouts.state import Role, StateKey


def _weight(path: str) -> StateKey:
  return StateKey(Role.WEIGHT, tuple(path.split(".")))


@pytest.mark.parametrize(
  ("path", "template", "index"),
  [
    ("decoder.layers_0.mlp.wi.kernel", "decoder.layers.mlp.wi.kernel", 0),
    ("decoder.layers_12.norm.scale", "decoder.layers.norm.scale", 12),
    ("decoder.layers.3.norm.scale", "decoder.layers.norm.scale", 3),
    ("decoder.moe_layers_1.norm.scale", "decoder.moe_layers.norm.scale", 1),
  ],
)
def test_layer_names(path, template, index):
  layer = stacking.split_layer(tuple(path.split(".")))
  assert layer is not None
  assert layer.template == tuple(template.split("."))
  assert layer.index == index


@pytest.mark.parametrize(
  "path",
  [
    "decoder.layers.mlp.wi.kernel",
    "decoder.layers_01.norm.scale",
    "decoder.decoder_norm.scale",
    "vision_encoder.layers_0.norm.scale",
    "decoder.layers_0",
    "layers_0.norm.scale",
  ],
)
def test_names_that_are_no_layer(path):
  assert stacking.split_layer(tuple(path.split("."))) is None


@pytest.mark.parametrize(
  ("path", "mode"),
  [
    ("decoder.layers_0.norm.scale", "unscanned"),
    ("decoder.layers.norm.scale", "scanned"),
    ("decoder.scanned_blocks.local_layers.norm.scale", "scanned"),
    ("decoder.decoder_norm.scale", "unknown"),
  ],
)
def test_scan_mode(path, mode):
  assert stacking.scan_mode([tuple(path.split("."))]) == mode


@pytest.mark.parametrize(("rank", "axis"), [(0, 0), (1, 1), (2, 1), (4, 1)])
def test_scan_axis_is_appended_to_vectors(rank, axis):
  assert stacking.scan_axis(rank) == axis


def test_layers_are_in_numeric_order():
  names = [f"decoder.layers_{i}.norm.scale" for i in (10, 2, 0, 1)]
  names += [f"decoder.layers_{i}.norm.scale" for i in range(3, 10)]
  groups = stacking.stack_flat(
    [*map(_weight, names), _weight("decoder.decoder_norm.scale")]
  )
  stacked = groups[_weight("decoder.layers.norm.scale")]
  assert [key.path[1] for key in stacked] == [f"layers_{i}" for i in range(11)]
  single = _weight("decoder.decoder_norm.scale")
  assert groups[single] == (single,)


def test_moments_stack_apart_from_weights():
  keys = [
    StateKey(role, ("decoder", f"layers_{i}", "scale"), slot)
    for i in range(2)
    for role, slot in ((Role.WEIGHT, ""), (Role.MOMENT, "mu"))
  ]
  groups = stacking.stack_flat(keys)
  assert {(key.role, key.slot) for key in groups} == {
    (Role.WEIGHT, ""),
    (Role.MOMENT, "mu"),
  }
  assert all(len(parts) == 2 for parts in groups.values())


def test_missing_layer_names_the_leaf_and_the_layers():
  keys = [_weight(f"decoder.layers_{i}.norm.scale") for i in (0, 1, 3)]
  with pytest.raises(LayoutError, match=r"norm\.scale.*layers 2 do not, of 4"):
    stacking.stack_flat(keys)


def test_layers_that_differ_are_no_flat_stack():
  keys = [_weight(f"decoder.layers_{i}.mlp.kernel") for i in range(2)]
  keys.append(_weight("decoder.layers_0.attention.kernel"))
  with pytest.raises(LayoutError, match=r"attention\.kernel"):
    stacking.stack_flat(keys)


def test_an_absurd_layer_number_is_an_error_at_once():
  keys = [
    _weight("decoder.layers_0.w.k"),
    _weight(f"decoder.layers_{10**15}.w.k"),
  ]
  with pytest.raises(LayoutError, match="do not"):
    stacking.stack_flat(keys)


def test_two_kinds_of_layers_are_no_flat_stack():
  keys = [
    _weight("decoder.dense_layers_0.w.k"),
    _weight("decoder.moe_layers_0.w.k"),
  ]
  with pytest.raises(LayoutError, match="dense_layers"):
    stacking.stack_flat(keys)


def test_a_layer_that_is_there_twice_is_an_error():
  keys = [_weight("decoder.layers_0.w.k"), _weight("decoder.layers.0.w.k")]
  with pytest.raises(LayoutError, match="both of layer 0"):
    stacking.stack_flat(keys)


def test_a_layer_beside_its_own_stack_is_an_error():
  keys = [_weight("decoder.layers_0.w.k"), _weight("decoder.layers.w.k")]
  for check in (stacking.stack_flat, stacking.check_unmixed):
    with pytest.raises(LayoutError, match="two models"):
      check(keys)
  stacking.check_unmixed([keys[0], _weight("decoder.layers.v.k")])
