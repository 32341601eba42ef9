"""What target leaves are made of, as data."""

import numpy as np
import pytest

from relayout.convert.composition import compose
from relayout.convert.form import Form
from relayout.errors import LayoutError
from relayout.layouts.layers import Grouping, LayerGroup
from relayout.layouts.state import Role, StateKey
from tests.support.leaves import stored_leaf, weight
from tests.support.specs import spec_of_v2


def _group(scanned, members, *lengths):
  return LayerGroup(
    ("decoder", *scanned.split(".")),
    tuple(("decoder", member) for member in members),
    lengths,
  )


_FLAT = Grouping(
  "flat", (_group("layers", ("layers_0", "layers_1", "layers_2"), 3),)
)
_REMAINDER = Grouping(
  "cycle with a remainder",
  (
    _group("layers.layers_0", ("layers_0", "layers_2"), 2),
    _group("layers.layers_1", ("layers_1", "layers_3"), 2),
    _group("layers_remainder.layers_0", ("layers_4",)),
  ),
)
_NESTED = Grouping(
  "nested",
  (
    _group(
      "scanned_blocks.local_layers",
      ("layers_0", "layers_1", "layers_3", "layers_4"),
      2,
      2,
    ),
    _group("scanned_blocks.global_layer", ("layers_2", "layers_5"), 2),
  ),
)


def _leaves(shapes):
  """Returns weights by key; `shapes` by dotted path."""
  return {
    weight(path): stored_leaf(path, spec_of_v2(shape, shape))
    for path, shape in shapes.items()
  }


def _unscanned(grouping, axis=1):
  return Form("unscanned", axis, grouping)


def _scanned(grouping, axis):
  return Form("scanned", axis, grouping)


def _described(composed):
  """Returns (source, its pins, target pins) of each part, by target path."""
  return {
    ".".join(leaf.key.path): [
      (slot.source.leaf.name, slot.source_pins, slot.target_pins)
      for slot in leaf.slots
    ]
    for leaf in composed
  }


@pytest.mark.parametrize(
  ("axis", "rank", "expected"),
  [(0, 2, 0), (1, 2, 1), (2, 2, 2), (1, 1, 1), (2, 1, 0), (1, 0, 0)],
)
def test_a_flat_stack_has_its_layers_at_the_scan_axis(axis, rank, expected):
  shape = (4, 5)[:rank]
  leaves = _leaves({f"decoder.layers_{i}.w": shape for i in range(3)})
  [leaf] = compose(leaves, _unscanned(_FLAT), _scanned(_FLAT, axis))
  assert leaf.layers == ((expected, 3),)
  assert _described([leaf]) == {
    "decoder.layers.w": [
      (f"decoder.layers_{i}.w", (), ((expected, i),)) for i in range(3)
    ]
  }


@pytest.mark.parametrize(
  ("axis", "shape", "expected"),
  [
    (0, (3, 4, 5), 0),
    (1, (4, 3, 5), 1),
    (2, (4, 5, 3), 2),
    (2, (3, 4), 0),
    (1, (3,), 0),
  ],
)
def test_unstacking_is_the_reverse(axis, shape, expected):
  leaves = _leaves({"decoder.layers.w": shape})
  found = compose(leaves, _scanned(_FLAT, axis), _unscanned(_FLAT))
  assert all(leaf.layers == () for leaf in found)
  assert _described(found) == {
    f"decoder.layers_{i}.w": [("decoder.layers.w", ((expected, i),), ())]
    for i in range(3)
  }


def test_leaves_outside_of_layers_stay_whole():
  leaves = _leaves({"token_embedder.embedding": (3, 4)})
  leaves[StateKey(Role.COUNT)] = stored_leaf("count", spec_of_v2((), ()))
  for source, target in (
    (_unscanned(_FLAT), _scanned(_FLAT, 0)),
    (_scanned(_FLAT, 0), _unscanned(_FLAT)),
    (_scanned(_FLAT, 0), _scanned(_FLAT, 2)),
  ):
    found = compose(leaves, source, target)
    assert {leaf.key for leaf in found} == leaves.keys()
    assert all(
      slot.source_pins == slot.target_pins == ()
      for leaf in found
      for slot in leaf.slots
    )


def test_a_remainder_is_renamed_and_never_stacked():
  leaves = _leaves({f"decoder.layers_{i}.w": (4, 5) for i in range(5)})
  found = compose(leaves, _unscanned(_REMAINDER), _scanned(_REMAINDER, 1))
  assert _described(found) == {
    "decoder.layers.layers_0.w": [
      ("decoder.layers_0.w", (), ((1, 0),)),
      ("decoder.layers_2.w", (), ((1, 1),)),
    ],
    "decoder.layers.layers_1.w": [
      ("decoder.layers_1.w", (), ((1, 0),)),
      ("decoder.layers_3.w", (), ((1, 1),)),
    ],
    "decoder.layers_remainder.layers_0.w": [("decoder.layers_4.w", (), ())],
  }
  [rest] = [leaf for leaf in found if "layers_remainder" in leaf.key.path]
  assert rest.layers == ()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_nested_groups_have_two_layer_axes(axis):
  """The positions are those that stacking twice with NumPy gives."""
  values = {i: np.full((4, 5), i) for i in range(6)}
  leaves = _leaves({f"decoder.layers_{i}.w": (4, 5) for i in range(6)})
  found = compose(leaves, _unscanned(_NESTED), _scanned(_NESTED, axis))
  [local] = [leaf for leaf in found if "local_layers" in leaf.key.path]
  inner = [np.stack([values[i], values[i + 1]], axis) for i in (0, 3)]
  expected = np.stack(inner, axis)
  assert len(local.slots) == 4
  for slot in local.slots:
    index = [slice(None)] * 4
    for position, place in slot.target_pins:
      index[position] = place
    number = int(slot.source.leaf.name.split(".")[1].removeprefix("layers_"))
    np.testing.assert_array_equal(expected[tuple(index)], values[number])
  assert all(expected.shape[axis] == n for axis, n in local.layers)


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 2), (2, 0)])
def test_restacking_moves_each_layer(source, target):
  shape = [4, 5]
  shape.insert(source, 3)
  leaves = _leaves({"decoder.layers.w": tuple(shape)})
  [leaf] = compose(leaves, _scanned(_FLAT, source), _scanned(_FLAT, target))
  assert leaf.layers == ((target, 3),)
  assert _described([leaf]) == {
    "decoder.layers.w": [
      ("decoder.layers.w", ((source, i),), ((target, i),)) for i in range(3)
    ]
  }


def test_a_stack_whose_axis_does_not_move_is_kept_whole():
  """A vector has its layers in front for an axis of 2 as for one of 0."""
  leaves = _leaves({"decoder.layers.scale": (3, 4)})
  [leaf] = compose(leaves, _scanned(_FLAT, 0), _scanned(_FLAT, 2))
  assert _described([leaf]) == {
    "decoder.layers.scale": [("decoder.layers.scale", (), ())]
  }
  assert leaf.layers == ((0, 3),)


def test_leaves_that_keep_their_layers_know_their_layer_axes():
  leaves = _leaves(
    {"decoder.scanned_blocks.local_layers.w": (4, 2, 2, 5), "outside": (3,)}
  )
  form = _scanned(_NESTED, 1)
  local, outside = compose(leaves, form, form)
  assert sorted(local.layers) == [(1, 2), (2, 2)]
  assert outside.layers == ()


@pytest.mark.parametrize("spelling", ["layers_{}", "layers.{}"])
def test_both_spellings_of_layers_stack_alike(spelling):
  names = ["decoder." + spelling.format(i) + ".w" for i in range(3)]
  leaves = _leaves(dict.fromkeys(names, (4, 5)))
  [leaf] = compose(leaves, _unscanned(_FLAT), _scanned(_FLAT, 1))
  assert leaf.key == weight("decoder.layers.w")
  assert [slot.source.leaf.name for slot in leaf.slots] == names


def test_moments_are_stacked_like_their_weights():
  leaves = {
    StateKey(Role.MOMENT, ("decoder", f"layers_{i}", "w"), slot): stored_leaf(
      f"{slot}.{i}", spec_of_v2((4, 5), (4, 5))
    )
    for i in range(3)
    for slot in ("mu", "nu")
  }
  found = compose(leaves, _unscanned(_FLAT), _scanned(_FLAT, 1))
  assert {
    leaf.key.slot: [slot.source.leaf.name for slot in leaf.slots]
    for leaf in found
  } == {slot: [f"{slot}.{i}" for i in range(3)] for slot in ("mu", "nu")}


def test_missing_layers_are_named():
  leaves = _leaves({"decoder.layers_0.w": (4,), "decoder.layers_2.w": (4,)})
  with pytest.raises(LayoutError, match=r"1 of the 3 layers.*layers_1"):
    compose(leaves, _unscanned(_FLAT), _scanned(_FLAT, 1))


def test_a_layer_and_its_stack_in_one_checkpoint_are_refused():
  leaves = _leaves({"decoder.layers.w": (3, 4), "decoder.layers_1.w": (4,)})
  with pytest.raises(LayoutError, match=r"both hold weight.*two models"):
    compose(leaves, _scanned(_FLAT, 0), _unscanned(_FLAT))


def test_what_is_no_weight_is_stacked_in_front():
  path = ("DeepSeekMoeBlock_0", "MoeBlock_0", "gate", "bias")
  leaves = {
    StateKey(Role.AUXILIARY, ("decoder", f"layers_{i}", *path)): stored_leaf(
      f"bias_{i}", spec_of_v2((4,), (4,))
    )
    for i in range(3)
  }
  [leaf] = compose(leaves, _unscanned(_FLAT), _scanned(_FLAT, 1))
  assert leaf.layers == ((0, 3),)
