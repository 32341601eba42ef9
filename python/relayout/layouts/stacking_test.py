"""Layer names, and what they tell."""

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


def test_layers_by_themselves_beside_a_stack():
  names = ["decoder.layers_0.w.k", "decoder.scanned_blocks.layers_0.w.k"]
  paths = [tuple(name.split(".")) for name in names]
  assert stacking.scan_mode(paths) == "scanned"
  assert stacking.scan_mode(paths[:1]) == "unscanned"


def test_a_layer_beside_its_own_stack_is_an_error():
  keys = [_weight("decoder.layers_0.w.k"), _weight("decoder.layers.w.k")]
  with pytest.raises(LayoutError, match="two models"):
    stacking.check_unmixed(keys)
  stacking.check_unmixed([keys[0], _weight("decoder.layers.v.k")])


def test_a_layer_in_two_spellings_is_an_error():
  keys = [_weight("decoder.layers_0.w.k"), _weight("decoder.layers.0.w.k")]
  with pytest.raises(LayoutError, match="two spellings"):
    stacking.check_unmixed(keys)
