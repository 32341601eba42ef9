"""Groups of layers, and where MaxText puts the axes of a stack."""

import itertools

import numpy as np
import pytest

from relayout.errors import LayoutError
from relayout.layouts.layers import Grouping, LayerGroup, layer_axes
from relayout.layouts.state import Role, StateKey
from relayout.tree.key_path import KeyPath


def _path(text: str) -> KeyPath:
  return tuple(text.split("."))


def _weight(text: str) -> StateKey:
  return StateKey(Role.WEIGHT, _path(text))


def _group(scanned: str, members: str, *lengths: int) -> LayerGroup:
  layers = tuple(_path(f"decoder.{name}") for name in members.split())
  return LayerGroup(_path(f"decoder.{scanned}"), layers, lengths)


PAIRS = Grouping(
  "pairs",
  (
    _group("layers.layers_0", "layers_0 layers_2", 2),
    _group("layers.layers_1", "layers_1 layers_3", 2),
    _group("layers_remainder.layers_0", "layers_4"),
  ),
)


@pytest.mark.parametrize(
  ("depth", "rank", "scan_axis", "at_front", "axes"),
  [
    (0, 3, 1, False, ()),
    (1, 0, 1, False, (0,)),
    (1, 1, 1, False, (1,)),
    (1, 4, 1, False, (1,)),
    (1, 2, 0, False, (0,)),
    (1, 2, 2, False, (2,)),
    (1, 1, 2, False, (0,)),
    (1, 1, 1, True, (0,)),
    (2, 2, 1, False, (1, 2)),
    (2, 1, 1, False, (1, 2)),
    (2, 0, 1, False, (1, 0)),
    (2, 1, 2, False, (2, 0)),
    (2, 2, 1, True, (0, 1)),
  ],
)
def test_layer_axes(depth, rank, scan_axis, at_front, axes):
  found = layer_axes(depth, rank, scan_axis=scan_axis, at_front=at_front)
  assert found == axes


def _scan(arrays: list, axis: int):
  """Stacks as MaxText's `create_scanned_layers` does."""
  stacked = np.stack(arrays)
  return np.moveaxis(stacked, 0, axis) if stacked.ndim > axis else stacked


@pytest.mark.parametrize("scan_axis", [0, 1, 2])
@pytest.mark.parametrize("rank", range(4))
def test_layer_axes_are_where_two_scans_put_them(rank, scan_axis):
  blocks, inner = 4, 3
  layers = np.arange(blocks * inner).reshape(blocks, inner)
  stacked = _scan(
    [
      _scan([np.full((7,) * rank, layer) for layer in block], scan_axis)
      for block in layers
    ],
    scan_axis,
  )
  axes = layer_axes(2, rank, scan_axis=scan_axis)
  assert tuple(stacked.shape[axis] for axis in axes) == (blocks, inner)
  for index in np.ndindex(blocks, inner):
    cell = [slice(None)] * stacked.ndim
    for axis, i in zip(axes, index, strict=True):
      cell[axis] = i
    assert np.all(stacked[tuple(cell)] == layers[index])


def test_a_group_has_as_many_layers_as_its_axes():
  with pytest.raises(ValueError, match="3 layers do not fill"):
    _group("layers", "layers_0 layers_1 layers_2", 2)


@pytest.mark.parametrize(
  ("first", "second", "message"),
  [
    ("layers", "layers", "one scanned name"),
    ("layers", "other", "one layer"),
  ],
)
def test_groups_are_apart(first, second, message):
  members = ("layers_0", "layers_1" if first == second else "layers_0")
  groups = tuple(
    _group(scanned, member)
    for scanned, member in zip((first, second), members, strict=True)
  )
  with pytest.raises(ValueError, match=message):
    Grouping("test", groups)


@pytest.mark.parametrize(
  ("path", "group", "number", "suffix"),
  [
    ("decoder.layers_0.mlp.kernel", 0, 0, "mlp.kernel"),
    ("decoder.layers_3.norm.scale", 1, 1, "norm.scale"),
    ("decoder.layers.3.norm.scale", 1, 1, "norm.scale"),
    ("decoder.layers_4.layers_0.scale", 2, 0, "layers_0.scale"),
  ],
)
def test_split_unscanned(path, group, number, suffix):
  leaf = PAIRS.split_unscanned(_path(path))
  assert leaf is not None
  assert leaf.group is PAIRS.groups[group]
  assert (leaf.number, leaf.suffix) == (number, _path(suffix))


@pytest.mark.parametrize(
  ("path", "group", "suffix"),
  [
    ("decoder.layers.layers_0.mlp.kernel", 0, "mlp.kernel"),
    ("decoder.layers_remainder.layers_0.norm.scale", 2, "norm.scale"),
  ],
)
def test_split_scanned(path, group, suffix):
  leaf = PAIRS.split_scanned(_path(path))
  assert leaf is not None
  assert leaf.group is PAIRS.groups[group]
  assert leaf.suffix == _path(suffix)


@pytest.mark.parametrize(
  "path",
  [
    "decoder.decoder_norm.scale",
    "decoder.layers_5.norm.scale",
    "decoder.layers_01.norm.scale",
    "decoder.layers.05.norm.scale",
    "decoder.layers_0",
    "decoder.layers.layers_0",
    "encoder.layers_0.norm.scale",
    "layers_0.norm.scale",
  ],
)
def test_leaves_outside_the_groups(path):
  assert PAIRS.split_unscanned(_path(path)) is None
  assert PAIRS.split_scanned(_path(path)) is None


def test_unstack_inverts_stack():
  keys = [
    StateKey(role, _path(f"decoder.layers_{i}.norm.scale"), slot)
    for role, slot in ((Role.WEIGHT, ""), (Role.MOMENT, "nu"))
    for i in (3, 0, 4, 2, 1)
  ]
  keys.append(_weight("decoder.decoder_norm.scale"))
  stacked = PAIRS.stack(keys)
  parts = list(itertools.chain.from_iterable(stacked.values()))
  assert sorted(parts, key=str) == sorted(keys, key=str)
  assert {key: PAIRS.unstack(key) for key in stacked} == stacked
  assert [
    key.path[1]
    for key in stacked[_weight("decoder.layers.layers_1.norm.scale")]
  ] == ["layers_1", "layers_3"]


def test_stack_names_the_layer_that_lacks_a_leaf():
  keys = [_weight(f"decoder.layers_{i}.norm.scale") for i in (0, 1, 3)]
  with pytest.raises(LayoutError, match=r"decoder\.layers_2 have not"):
    PAIRS.stack(keys)


def test_stack_refuses_a_leaf_in_two_spellings():
  keys = [
    _weight("decoder.layers_4.norm.scale"),
    _weight("decoder.layers.4.norm.scale"),
  ]
  with pytest.raises(LayoutError, match="two spellings"):
    PAIRS.stack(keys)


def test_stack_refuses_a_layer_beside_its_own_stack():
  keys = [
    _weight("decoder.layers_4.norm.scale"),
    _weight("decoder.layers_remainder.layers_0.norm.scale"),
  ]
  with pytest.raises(LayoutError, match="two models"):
    PAIRS.stack(keys)
