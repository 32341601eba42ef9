"""What is rewritten together, in the common space of both sides."""

import numpy as np
import pytest

from relayout.convert import ways
from relayout.convert.composition import compose
from relayout.convert.form import Form
from relayout.convert.plan import ItemPlan, Stored, TargetLeaf, Way
from relayout.convert.rewriting import parts, tasks
from relayout.layouts.layers import Grouping, LayerGroup
from relayout.tree.key_path import TypedPath
from tests.support.leaves import stored_leaf, weight
from tests.support.specs import spec_of_v2

_WISHES = ways.Wishes(chunk_bytes=4)
"""One element a chunk, so everything is rewritten."""

_FLAT = Grouping(
  "flat",
  (
    LayerGroup(
      ("decoder", "layers"),
      tuple(("decoder", f"layers_{i}") for i in range(3)),
      (3,),
    ),
  ),
)
_NESTED = Grouping(
  "nested",
  (
    LayerGroup(
      ("decoder", "layers"),
      tuple(("decoder", f"layers_{i}") for i in range(6)),
      (2, 3),
    ),
  ),
)


def _targets(shapes, before, after):
  """Returns the target's leaves, all of them rewritten."""
  leaves = {
    weight(path): stored_leaf(path, spec_of_v2(shape, shape))
    for path, shape in shapes.items()
  }
  result = []
  for composed in compose(leaves, before, after):
    spec, origin = ways.choose(composed, None, _WISHES)
    assert origin.way is Way.REWRITTEN
    path = TypedPath.of_dicts(composed.key.path)
    result.append(TargetLeaf(path, spec, origin))
  return result


def _form(axis, grouping=_FLAT):
  if axis is None:
    return Form("unscanned", 1, grouping)
  return Form("scanned", axis, grouping)


def _model(axis, grouping):
  """Returns the values of a model whose layer i has i in the hundreds."""
  lengths = grouping.groups[0].lengths
  layers = [
    np.arange(20).reshape(4, 5) + 100 * i for i in range(np.prod(lengths))
  ]
  if axis is None:
    return {f"decoder.layers_{i}.w": v for i, v in enumerate(layers)}
  if len(lengths) == 2:
    layers = [np.stack(layers[i : i + 3], axis) for i in (0, 3)]
  return {"decoder.layers.w": np.stack(layers, axis)}


def _in_common_space(task, arrays, axes):
  """Returns a side's arrays as one array of the common space."""
  if len(axes) == len(task.shape):
    [values] = arrays
    return np.transpose(values, [axes.index(a) for a in range(len(axes))])
  lengths = [task.shape[axis] for axis in task.layer_axes]
  stack = np.stack(arrays).reshape(*lengths, *arrays[0].shape)
  return np.transpose(stack, np.argsort([*task.layer_axes, *axes]))


@pytest.mark.parametrize("grouping", [_FLAT, _NESTED], ids=["flat", "nested"])
@pytest.mark.parametrize(
  ("source", "target"),
  [
    (source, target)
    for source in (None, 0, 1, 2)
    for target in (None, 0, 1, 2)
    if source != target
  ],
)
def test_both_sides_are_one_array_of_the_common_space(grouping, source, target):
  before, after = _model(source, grouping), _model(target, grouping)
  leaves = _targets(
    {name: values.shape for name, values in before.items()},
    _form(source, grouping),
    _form(target, grouping),
  )
  [task] = tasks(leaves)
  assert {s.leaf.name for s in task.sources} == before.keys()
  assert {leaf.name for leaf in task.targets} == after.keys()
  sides = [
    _in_common_space(
      task, [before[s.leaf.name] for s in task.sources], task.source_axes
    ),
    _in_common_space(
      task, [after[leaf.name] for leaf in task.targets], task.target_axes
    ),
  ]
  assert sides[0].shape == task.shape
  np.testing.assert_array_equal(*sides)


def test_an_array_that_keeps_its_axes_is_a_task_by_itself():
  leaves = _targets({"a": (4, 5), "b": (6,)}, _form(None), _form(None))
  found = [*tasks(leaves)]
  assert [(t.shape, t.layer_axes) for t in found] == [((4, 5), ()), ((6,), ())]
  assert all(task.source_axes == task.target_axes for task in found)


def test_layers_are_in_the_order_of_their_numbers():
  shapes = {"decoder.layers.w": (3, 4)}
  leaves = _targets(shapes, _form(0), _form(None))
  [task] = tasks(leaves[::-1])
  assert [leaf.name for leaf in task.targets] == [
    f"decoder.layers_{i}.w" for i in range(3)
  ]


def test_what_is_not_rewritten_is_no_task():
  leaf = stored_leaf("w", spec_of_v2((4,), (4,)))
  path = TypedPath.of_dicts(("w",))
  [composed] = compose({weight("w"): leaf}, _form(None), _form(None))
  spec, origin = ways.choose(composed, None, ways.Wishes())
  assert isinstance(origin, Stored)
  assert [*tasks([TargetLeaf(path, spec, origin)])] == []


def test_parts_have_some_hundred_megabytes():
  """Arrays of 100 MiB: three a part, the rest in the last."""
  shape = (25, 1 << 20)
  shapes = {f"w{i}": shape for i in range(7)}
  leaves = _targets(shapes, _form(None), _form(None))
  found = parts(ItemPlan("items", "", tuple(leaves)))
  assert [[t.targets[0].name for t in part] for part in found] == [
    ["w0", "w1", "w2"],
    ["w3", "w4", "w5"],
    ["w6"],
  ]
