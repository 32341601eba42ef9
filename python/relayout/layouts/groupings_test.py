"""Groups worked out from names and shapes, proven cell by cell.

Every weight of layer i is filled with i, of its expert e with 100 * i + e.
The stacks that MaxText makes of them are written down by hand.
"""

import numpy as np
import pytest

from relayout.errors import LayoutError, UnsupportedError
from relayout.layouts import families, groupings
from relayout.layouts.layers import layer_axes
from relayout.layouts.patterns import parse_pattern
from relayout.layouts.state import Role, StateKey
from relayout.tree.key_path import KeyPath, dotted

type Arrays = dict[KeyPath, np.ndarray]

_BIAS = "DeepSeekMoeBlock_0.MoeBlock_0.gate.bias"


def _path(text: str) -> KeyPath:
  return tuple(text.split("."))


# Text of the pattern; scanned name -> numbers of `layers_<i>`, or names of
# layers, nested as its scans are; a number alone is no stack.
STACKS = [
  ("flat", {"layers": [0, 1, 2]}),
  ("flat", {"layers": [0]}),
  ("cycle:2", {"layers.layers_0": [0, 2, 4], "layers.layers_1": [1, 3, 5]}),
  ("cycle:4", {f"layers.layers_{i}": [i, i + 4] for i in range(4)}),
  ("qwen3_5:4", {f"layers.layer_{i}": [i, i + 4] for i in range(4)}),
  (
    "gemma3",
    {f"layers.layers_{i}": [i] for i in range(6)}
    | {"layers_remainder.layers_0": 6, "layers_remainder.layers_1": 7},
  ),
  ("gemma3", {f"layers.layers_{i}": [i, i + 6] for i in range(6)}),
  ("gemma3", {f"layers_remainder.layers_{i}": i for i in range(4)}),
  (
    "gemma4",
    {
      "scanned_blocks.local_layers": [[0, 1, 2, 3, 4], [6, 7, 8, 9, 10]],
      "scanned_blocks.global_layer": [5, 11],
      "layers_remainder.local_layers": [12, 13],
    },
  ),
  (
    "gemma4",
    {
      "scanned_blocks.local_layers": [[0, 1, 2, 3, 4]],
      "scanned_blocks.global_layer": [5],
    },
  ),
  (
    "qwen3_next:4",
    {
      "layers.local_layers": [[0, 1, 2], [4, 5, 6]],
      "layers.global_layer": [3, 7],
      "layers_remainder.local_layers": [8],
    },
  ),
  (
    "qwen3_next:3",
    {
      "layers.local_layers": [[0, 1], [3, 4], [6, 7]],
      "layers.global_layer": [2, 5, 8],
    },
  ),
  (
    "deepseek4:3",
    {
      "layers_0": 0,
      "layers_1": 1,
      "layers_2": 2,
      "scanned_blocks.layers_0": [3, 5],
      "scanned_blocks.layers_1": [4, 6],
    },
  ),
  (
    "deepseek",
    {
      "dense_layers": ["dense_layers_0"],
      "moe_layers": ["moe_layers_0", "moe_layers_1", "moe_layers_2"],
    },
  ),
]
_IDS = [f"{text}-{len(stacks)}" for text, stacks in STACKS]


def _layer(layer: int | str) -> dict[str, np.ndarray]:
  """Returns the leaves of a layer: all ranks, experts, no `nnx.Param`."""
  name = _name(layer)
  i = int(name.rpartition("_")[2]) + 10 * name.startswith("moe")
  experts = 100 * i + np.arange(3)
  return {
    "step_size": np.array(i),
    "norm.scale": np.full(5, i),
    "mlp.wi.kernel": np.full((5, 6), i),
    "moe.wi_0": np.broadcast_to(experts[:, None, None], (3, 5, 6)),
    _BIAS: experts,
  }


def _scan(arrays: list[np.ndarray], axis: int) -> np.ndarray:
  """Stacks as MaxText's `create_scanned_layers` does."""
  stacked = np.stack(arrays)
  return np.moveaxis(stacked, 0, axis) if stacked.ndim > axis else stacked


def _nested(layers, leaf: str, axis: int) -> np.ndarray:
  if not isinstance(layers, list):
    return _layer(layers)[leaf]
  return _scan([_nested(layer, leaf, axis) for layer in layers], axis)


def _name(layer: int | str) -> str:
  return layer if isinstance(layer, str) else f"layers_{layer}"


def _scanned(stacks, axis: int) -> Arrays:
  result = {
    _path(f"decoder.{name}.{leaf}"): _nested(
      layers, leaf, 0 if leaf == _BIAS else axis
    )
    for name, layers in stacks.items()
    for leaf in _layer(0)
  }
  return {**result, _path("decoder.decoder_norm.scale"): np.full(5, -1)}


def _unscanned(stacks) -> Arrays:
  result = {
    _path(f"decoder.{_name(layer)}.{leaf}"): values
    for layers in stacks.values()
    for layer in np.ravel(layers).tolist()
    for leaf, values in _layer(layer).items()
  }
  return {**result, _path("decoder.decoder_norm.scale"): np.full(5, -1)}


def _key(path: KeyPath) -> StateKey:
  return StateKey(Role.WEIGHT, path)


def _axes(grouping, path: KeyPath, rank: int, scan_axis: int):
  """Returns lengths and positions of the layer axes of a scanned leaf."""
  leaf = grouping.split_scanned(path)
  lengths = leaf.group.lengths if leaf else ()
  front = groupings.stacks_at_front(path)
  axes = layer_axes(len(lengths), rank, scan_axis=scan_axis, at_front=front)
  return lengths, axes


def _same(got: Arrays, want: Arrays) -> None:
  assert got.keys() == want.keys()
  for path, values in want.items():
    assert np.array_equal(got[path], values), dotted(path)


@pytest.mark.parametrize("scan_axis", [0, 1, 2])
@pytest.mark.parametrize(("text", "stacks"), STACKS, ids=_IDS)
def test_stacking_puts_every_layer_where_maxtext_does(text, stacks, scan_axis):
  source = _unscanned(stacks)
  grouping = groupings.grouping_of_unscanned(parse_pattern(text), source)
  target = {}
  for key, parts in grouping.stack(map(_key, source)).items():
    layers = [source[part.path] for part in parts]
    lengths, axes = _axes(grouping, key.path, layers[0].ndim, scan_axis)
    stacked = np.reshape(np.stack(layers), (*lengths, *layers[0].shape))
    target[key.path] = np.moveaxis(stacked, range(len(axes)), axes)
  _same(target, _scanned(stacks, scan_axis))


@pytest.mark.parametrize("scan_axis", [0, 1, 2])
@pytest.mark.parametrize(("text", "stacks"), STACKS, ids=_IDS)
def test_unstacking_takes_every_layer_from_there(text, stacks, scan_axis):
  source = _scanned(stacks, scan_axis)
  grouping = groupings.grouping_of_scanned(
    parse_pattern(text),
    {path: values.shape for path, values in source.items()},
    scan_axis=scan_axis,
  )
  target = {}
  for path, values in source.items():
    parts = grouping.unstack(_key(path))
    leaf = grouping.split_scanned(path)
    depth = len(leaf.group.lengths) if leaf else 0
    _, axes = _axes(grouping, path, values.ndim - depth, scan_axis)
    in_front = np.moveaxis(values, axes, range(depth))
    layers = np.reshape(in_front, (len(parts), *in_front.shape[depth:]))
    for part, layer in zip(parts, layers, strict=True):
      assert part.path not in target
      target[part.path] = layer
  _same(target, _unscanned(stacks))


@pytest.mark.parametrize(("text", "stacks"), STACKS, ids=_IDS)
def test_both_models_have_one_grouping(text, stacks):
  pattern = parse_pattern(text)
  shapes = {p: values.shape for p, values in _scanned(stacks, 1).items()}
  scanned = groupings.grouping_of_scanned(pattern, shapes)
  assert groupings.grouping_of_unscanned(pattern, _unscanned(stacks)) == scanned
  assert scanned.pattern == text


def test_every_family_that_is_scanned_is_among_these():
  texts = {family.pattern for family in families.FAMILIES}
  stacked = {text for text in texts if not parse_pattern(text).refusal}
  assert stacked <= {text for text, _ in STACKS}


def _names(*paths: str) -> list[KeyPath]:
  return [_path(f"decoder.{path}") for path in paths]


def _layers(count: int, name: str = "layers_{}.norm.scale") -> list[KeyPath]:
  return _names(*(name.format(i) for i in range(count)))


@pytest.mark.parametrize("num_dense", [0, 1, 3])
def test_deepseek_has_two_runs_of_layers(num_dense):
  pattern = parse_pattern("deepseek")
  paths = [
    *_layers(num_dense, "dense_layers_{}.mlp.kernel"),
    *_layers(12, "moe_layers_{}.moe.kernel"),
    *_names("decoder_norm.scale"),
    _path("mtp_block.mtp_layer_1.transformer_layer.moe.kernel"),
  ]
  grouping = groupings.grouping_of_unscanned(pattern, paths)
  lengths = [(g.scanned[1], g.lengths) for g in grouping.groups]
  assert lengths[-1] == ("moe_layers", (12,))
  assert lengths[:-1] == [("dense_layers", (num_dense,))] * bool(num_dense)
  assert grouping.groups[-1].members == tuple(
    ("decoder", f"moe_layers_{i}") for i in range(12)
  )
  shapes = {
    _path("decoder.moe_layers.moe.kernel"): (4, 12, 8),
    _path("mtp_block.mtp_layer_1.transformer_layer.moe.kernel"): (4, 8),
  }
  if num_dense:
    shapes[_path("decoder.dense_layers.mlp.kernel")] = (4, num_dense, 8)
  assert groupings.grouping_of_scanned(pattern, shapes) == grouping


def test_layers_may_be_numbered_at_a_level_of_their_own():
  pattern = parse_pattern("cycle:2")
  apart = _layers(4, "layers.{}.norm.scale")
  grouping = groupings.grouping_of_unscanned(pattern, apart)
  assert grouping == groupings.grouping_of_unscanned(pattern, _layers(4))
  parts = grouping.stack(map(_key, apart))[
    _key(_path("decoder.layers.layers_1.norm.scale"))
  ]
  assert [part.path[2] for part in parts] == ["1", "3"]


def test_positions_of_a_cycle_may_differ():
  paths = [
    path
    for i in range(4)
    for path in _names(f"layers_{i}.{'moe.wi' if i % 2 else 'mlp.wi.kernel'}")
  ]
  groupings.grouping_of_unscanned(parse_pattern("cycle:2"), paths)
  with pytest.raises(LayoutError, match=r"2 of 4 layers.*--model_name"):
    groupings.grouping_of_unscanned(parse_pattern("flat"), paths)


@pytest.mark.parametrize(
  ("text", "paths", "message"),
  [
    (
      "flat",
      _names("layers_0.a.b", "layers_3.a.b"),
      r"decoder\.layers_3 is there, and 2 before it are not: layers 1, 2",
    ),
    (
      "flat",
      _names(f"layers_{10**9 - 1}.a.b"),
      r"999999999 before it are not: layers 0, 1, 2, 3, 4, 5, 6, 7 \.\.\.",
    ),
    (
      "cycle:4",
      _layers(6),
      r"6 layers decoder\.layers_<i>.*cycle:4.*blocks of 4.*--model_name",
    ),
    ("deepseek4:3", _layers(6), "6 layers.*blocks of 2 after the first 3"),
    ("deepseek4:3", _layers(2), "2 layers.*blocks of 2 after the first 3"),
    (
      "flat",
      _names("dense_layers_0.a.b", "moe_layers_0.a.b"),
      r"decoder\.dense_layers_0\.a\.b looks.*flat are called layers_<i>",
    ),
    ("deepseek", _layers(2), r"called dense_layers_<i>, moe_layers_<i>"),
    ("gemma3", _names("layers.layers_0.a.b"), r"looks like a part of a layer"),
    ("flat", _names("layers_01.a.b"), "looks like a part of a layer"),
    ("flat", _names(f"layers_{10**30}.a.b"), "looks like a part of a layer"),
    ("flat", _names("pipeline_module.layers.a"), "looks like a part"),
    (
      "flat",
      [*_layers(2), *_names("layers.0.norm.scale")],
      "one leaf in two spellings",
    ),
    (
      "flat",
      [*_layers(3), *_names("layers_0.b", "layers_2.b")],
      r"decoder\.layers\.b: 2 of 3 layers.*decoder\.layers_1 have not",
    ),
    (
      "gemma4",
      [*_layers(12), *_names("layers_5.b")],
      r"global_layer\.b: 1 of 2 layers.*decoder\.layers_11 have not",
    ),
  ],
)
def test_unscanned_layers_that_do_not_fit(text, paths, message):
  with pytest.raises(LayoutError, match=message):
    groupings.grouping_of_unscanned(parse_pattern(text), paths)


def _shapes(**shapes: tuple[int, ...]) -> dict[KeyPath, tuple[int, ...]]:
  return {
    _path("decoder." + name.replace("__", ".")): shape
    for name, shape in shapes.items()
  }


_BLOCK = {f"layers__layers_{i}__scale": (8, 2) for i in range(6)}
_GEMMA4 = {
  "scanned_blocks__local_layers__scale": (8, 2, 5),
  "scanned_blocks__global_layer__scale": (8, 2),
}


@pytest.mark.parametrize(
  ("text", "shapes", "message"),
  [
    (
      "flat",
      {"layers__q__kernel": (8, 3, 4), "layers__out__kernel": (4, 8, 3)},
      r"layers\.q\.kernel stacks 3 layers, decoder\.layers\.out\.kernel 8"
      r".*param_scan_axis.*another model",
    ),
    (
      "flat",
      {"layers__layers_0__norm__scale": (8, 3)},
      r"decoder\.layers\.layers_0\.norm\.scale: layers_0 is a layer of a "
      "block.*flat each layers is a single",
    ),
    ("flat", {"layers__local_layers__scale": (8, 3)}, "layer of a block"),
    ("flat", {"layers__layer_0__scale": (8, 3)}, "layer of a block"),
    ("flat", {"layers_0__norm__scale": (8,)}, "flat are called layers"),
    ("flat", {"layers_remainder__norm__scale": (8,)}, "are called layers"),
    ("flat", {"dense_layers__norm__scale": (8, 1)}, "are called layers"),
    ("cycle:2", {"layers__norm__scale": (8, 3)}, "layers.layers_1"),
    ("cycle:2", {"layers__layers_2__scale": (8, 3)}, "layers.layers_1"),
    (
      "cycle:2",
      {"layers__layers_0__scale": (8, 3)},
      r"no leaf below decoder\.layers\.layers_1",
    ),
    ("flat", {"layers__scalar": ()}, r"shape \[\] has no room for 1 layer"),
    ("flat", {"layers__scale": (8, 0)}, r"layer axes of \[0\]"),
    ("flat", {"layers__scale": (8, 10**15)}, "where 1 to 10000 can be"),
    (
      "gemma4",
      _GEMMA4 | {"scanned_blocks__local_layers__kernel": (8, 2, 4, 8)},
      "4 layers in a block, where the pattern gemma4 has 5",
    ),
    (
      "gemma4",
      _GEMMA4 | {"layers_remainder__local_layers__scale": (8, 6)},
      "6 layers, where the pattern gemma4 has 1 to 5",
    ),
    (
      "gemma4",
      _GEMMA4
      | {
        "layers_remainder__local_layers__scale": (8, 2),
        "layers_remainder__local_layers__kernel": (8, 3, 8),
      },
      r"scale stacks 2 layers, .*kernel 3\.",
    ),
    (
      "gemma3",
      _BLOCK | {"layers_remainder__layers_1__scale": (8,)},
      r"no leaf below decoder\.layers_remainder\.layers_0",
    ),
    (
      "gemma3",
      _BLOCK | {"layers__layers_2__kernel": (8, 3, 8)},
      r"layers_0\.scale stacks 2 layers, decoder\.layers\.layers_2\.kernel 3",
    ),
    (
      "deepseek4:3",
      {"layers_0__scale": (8,), "layers_2__scale": (8,)},
      r"no leaf below decoder\.layers_1",
    ),
  ],
)
def test_scanned_layers_that_do_not_fit(text, shapes, message):
  with pytest.raises(LayoutError, match=message):
    groupings.grouping_of_scanned(parse_pattern(text), _shapes(**shapes))


def test_another_scan_axis_shows():
  pattern = parse_pattern("flat")
  shapes = _shapes(layers__q__kernel=(3, 8, 4), layers__out__kernel=(3, 4, 8))
  grouping = groupings.grouping_of_scanned(pattern, shapes, scan_axis=0)
  assert grouping.groups[0].lengths == (3,)
  with pytest.raises(LayoutError, match=r"stacks 8 layers.*param_scan_axis"):
    groupings.grouping_of_scanned(pattern, shapes)


def test_random_number_state_needs_no_group():
  rng = "rngs.params.count"
  unscanned = [*_layers(6), *_names(f"layers_0.{rng}", f"rngs.{rng}")]
  grouping = groupings.grouping_of_unscanned(parse_pattern("gemma4"), unscanned)
  shapes = _shapes(
    scanned_blocks__local_layers__scale=(8, 1, 5),
    scanned_blocks__local_layers__rngs__params__key=(1, 5, 2),
    scanned_blocks__global_layer__scale=(8, 1),
    scanned_blocks__rngs__params__key=(1, 2),
    layers_remainder__rngs__params__key=(2,),
  )
  pattern = parse_pattern("gemma4")
  assert groupings.grouping_of_scanned(pattern, shapes) == grouping


@pytest.mark.parametrize("text", ["unscanned", "deepseek_engram"])
def test_patterns_without_groups_are_refused(text):
  pattern = parse_pattern(text)
  with pytest.raises(UnsupportedError, match=r"MaxText.*--scan_layers=keep"):
    groupings.grouping_of_unscanned(pattern, _layers(2))
  with pytest.raises(UnsupportedError, match=r"MaxText.*--scan_layers=keep"):
    groupings.grouping_of_scanned(pattern, _shapes(layers__scale=(8, 2)))


def test_a_model_without_layers_has_no_groups():
  pattern = parse_pattern("gemma3")
  embedding = _path("token_embedder.embedding")
  assert groupings.grouping_of_unscanned(pattern, [embedding]).groups == ()
  shapes = {embedding: (8, 4)}
  assert groupings.grouping_of_scanned(pattern, shapes).groups == ()
