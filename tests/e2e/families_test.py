"""The table of model families says what the released MaxText does.

For every model name MaxText builds its abstract model in both scan modes; our
groups must turn the names and shapes of one into those of the other.
"""

import itertools

import numpy as np
import pytest
from harness import maxtext_run, model_trees
from harness.model_trees import ModelTrees, Variant

from relayout.errors import UnsupportedError
from relayout.layouts import families, groupings, patterns
from relayout.layouts.layers import Grouping, layer_axes
from relayout.layouts.state import Role, StateKey

# There is a configuration, and MaxText's `model_name` does not take it.
_NOT_ACCEPTED = {"llama3-405b"}
_ENGRAM = "deepseek_engram"
_ENGRAM_FLAGS = ("hf_access_token=x", "tokenizer_path=x")
_EXTRA = (
  Variant("deepseek3-tiny", ("mtp_num_layers=1",)),
  # Encoders of images and sound are not scanned.
  *(
    Variant(model, ("use_multimodal=True",))
    for model in (
      "gemma3-4b",
      "gemma4-26b",
      "llama4-17b-16e",
      "qwen3.5-35b-a3b",
    )
  ),
  *(
    Variant(model, scan_axis=scan_axis)
    for model in (
      "deepseek3-tiny",
      "gemma3-4b",
      "gemma4-26b",
      "qwen3-0.6b",
    )
    for scan_axis in (0, 2)
  ),
)


def _variants() -> list[Variant]:
  plain = [
    Variant(model, _ENGRAM_FLAGS if family.pattern == _ENGRAM else ())
    for family in families.FAMILIES
    for model in family.models
  ]
  return [*plain, *_EXTRA]


def _cases() -> dict[Variant, ModelTrees]:
  """Returns the case of each variant: one of all those of its block."""
  by_block = sorted(_variants(), key=_block)
  return {
    variant: case
    for block, group in itertools.groupby(by_block, key=_block)
    for case in [ModelTrees(f"trees_{block}", "", variants=tuple(group))]
    for variant in case.variants
  }


def _block(variant: Variant) -> str:
  return families.family_of(variant.model).block


def _pattern(variant: Variant) -> str:
  return families.family_of(variant.model).pattern


def _parametrize(want):
  """Parametrizes with the variants for which `want` is true."""
  return pytest.mark.parametrize(
    ("case", "variant"),
    [
      pytest.param(case, variant, id=str(variant))
      for variant, case in _cases().items()
      if want(variant)
    ],
  )


def _is_grouped(variant: Variant) -> bool:
  return (
    _pattern(variant) not in ("unscanned", _ENGRAM)
    and variant.model not in _NOT_ACCEPTED
  )


def test_every_model_is_in_its_family():
  table = {
    model: family.block
    for family in families.FAMILIES
    for model in family.models
  }
  assert table == maxtext_run.decoder_blocks()
  assert table.keys() - model_trees.accepted_models() == _NOT_ACCEPTED


@_parametrize(_is_grouped)
def test_the_groups_cover_every_leaf_once(outcome, variant):
  trees = outcome[variant]
  pattern = patterns.pattern_of(variant.model)
  grouping = groupings.grouping_of_unscanned(pattern, trees.unscanned)
  shapes = {path: leaf.shape for path, leaf in trees.scanned.items()}
  assert grouping == groupings.grouping_of_scanned(
    pattern, shapes, scan_axis=variant.scan_axis
  )
  assert _num_layers(grouping) == trees.num_layers
  stacks = grouping.stack(_state_keys(trees.unscanned))
  assert stacks.keys() == set(_state_keys(trees.scanned))
  assert {key: grouping.unstack(key) for key in stacks} == stacks
  for key, parts in stacks.items():
    layers = {trees.unscanned[part.path] for part in parts}
    assert len(layers) == 1, key
    (layer,) = layers
    scanned = trees.scanned[key.path]
    assert (layer.variable, layer.dtype) == (scanned.variable, scanned.dtype)
    shape = _stacked_shape(grouping, key, layer.shape, variant.scan_axis)
    assert shape == scanned.shape, key


@_parametrize(_is_grouped)
def test_names_tell_what_is_no_parameter(outcome, variant):
  for tree in (outcome[variant].unscanned, outcome[variant].scanned):
    at_front = {path for path in tree if groupings.stacks_at_front(path)}
    assert at_front == {p for p, leaf in tree.items() if not leaf.is_param}


@_parametrize(_is_grouped)
def test_random_number_state_is_stacked_in_front(outcome, variant):
  """Scanned blocks may have more of it, beside their layers."""
  trees = outcome[variant]
  pattern = patterns.pattern_of(variant.model)
  grouping = groupings.grouping_of_unscanned(pattern, trees.unscanned)
  for path, leaf in trees.scanned.items():
    place = grouping.split_scanned(path)
    if leaf.is_rng and place:
      assert leaf.shape == place.group.lengths, path


@_parametrize(lambda variant: _pattern(variant) == "unscanned")
def test_maxtext_never_scans_these(outcome, variant):
  trees = outcome[variant]
  assert "requires scan_layers=False" in trees.scanned
  assert any(path[:2] == ("decoder", "layers_0") for path in trees.unscanned)
  with pytest.raises(UnsupportedError):
    groupings.grouping_of_unscanned(
      patterns.pattern_of(variant.model), trees.unscanned
    )


@_parametrize(lambda variant: _pattern(variant) == _ENGRAM)
def test_engram_layers_are_in_scanned_models_only(outcome, variant):
  trees = outcome[variant]
  assert any("engram" in path for path in trees.scanned)
  assert not any("engram" in path for path in trees.unscanned)


@_parametrize(lambda variant: variant.model in _NOT_ACCEPTED)
def test_maxtext_does_not_take_these(outcome, variant):
  trees = outcome[variant]
  for refusal in (trees.unscanned, trees.scanned):
    assert "model_name" in refusal
    assert "Input should be" in refusal


@pytest.mark.parametrize(
  "model", sorted({variant.model for variant in filter(_is_grouped, _cases())})
)
def test_the_real_number_of_layers_fits(model):
  config = maxtext_run.model_config(model)
  num_layers = config["base_num_decoder_layers"]
  grouping = groupings.grouping_of_unscanned(
    patterns.pattern_of(model), _layer_names(config)
  )
  assert _num_layers(grouping) == num_layers
  stacked = max(
    groups.lengths[0] for groups in grouping.groups if groups.lengths
  )
  assert stacked == {
    "deepseek": num_layers - config.get("first_num_dense_layers", 0),
    "deepseek4": (num_layers - config.get("first_num_hash_layers", 0)) // 2,
    "gemma3": num_layers // 6,
    "gemma4": num_layers // 6,
  }.get(
    config["decoder_block"],
    num_layers // config.get("inhomogeneous_layer_cycle_interval", 1),
  )


def _layer_names(config) -> list[tuple[str, ...]]:
  """Returns a leaf of each layer of a model of the configuration."""
  count = config["base_num_decoder_layers"]
  stems = ["layers"] * count
  numbers = list(range(count))
  if config["decoder_block"] == "deepseek":
    dense = config["first_num_dense_layers"]
    stems = ["dense_layers"] * dense + ["moe_layers"] * (count - dense)
    numbers = [*range(dense), *range(count - dense)]
  return [
    ("decoder", f"{stem}_{i}", "scale")
    for stem, i in zip(stems, numbers, strict=True)
  ]


def _num_layers(grouping: Grouping) -> int:
  return sum(len(group.members) for group in grouping.groups)


def _state_keys(tree: model_trees.Tree) -> list[StateKey]:
  """Returns the keys of all leaves but those of random number streams."""
  return [
    StateKey(Role.WEIGHT, path)
    for path, leaf in tree.items()
    if not leaf.is_rng
  ]


def _stacked_shape(
  grouping: Grouping, key: StateKey, shape: tuple[int, ...], scan_axis: int
) -> tuple[int, ...]:
  leaf = grouping.split_scanned(key.path)
  lengths = leaf.group.lengths if leaf else ()
  axes = layer_axes(
    len(lengths),
    len(shape),
    scan_axis=scan_axis,
    at_front=groupings.stacks_at_front(key.path),
  )
  stack = np.broadcast_to(0, (*lengths, *shape))
  return np.moveaxis(stack, range(len(axes)), axes).shape
