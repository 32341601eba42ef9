"""Rng state for a Tunix trainer: what stays, and what is derived anew."""

import math

import numpy as np
import pytest

from relayout.convert import tunix_rng
from relayout.convert.form import Form
from relayout.layouts.layers import Grouping, LayerGroup
from relayout.layouts.state import Role, State, StateKey, StoredLeaf
from relayout.metadata.item import open_item
from tests.support import stores

_LAYERS = 3
_GROUPING = Grouping(
  "flat",
  (
    LayerGroup(
      ("decoder", "layers"),
      tuple(("decoder", f"layers_{i}") for i in range(_LAYERS)),
      (_LAYERS,),
    ),
  ),
)
_SCANNED = Form("scanned", 1, _GROUPING)
_UNSCANNED = Form("unscanned", 1, _GROUPING)
_STREAM = "self_attention.rngs.dropout"
_ROOT = "decoder.rngs.dropout"


def _state(tmp_path, arrays):
  """Returns a state of rng leaves with these values, by model path."""
  stores.write_item(tmp_path / "model_params", arrays)
  item = open_item(tmp_path / "model_params")
  leaves = {
    StateKey(Role.RNG, leaf.path.names): StoredLeaf(item, leaf)
    for leaf in item.leaves
  }
  return State(leaves=leaves, optimizer=None, step=None)


def _scanned(tmp_path, width):
  """A model's stream and one for each layer; keys of `width` words."""
  words = np.arange(width * (_LAYERS + 1), dtype=np.uint32)
  keys = words.reshape(_LAYERS + 1, width) + np.uint32(2**32 - 100)
  return _state(
    tmp_path,
    {
      f"{_ROOT}.key": keys[0],
      f"{_ROOT}.count": np.uint32(7),
      f"decoder.layers.{_STREAM}.key": keys[1:],
      f"decoder.layers.{_STREAM}.count": np.arange(_LAYERS, dtype=np.uint32),
    },
  ), keys


def _unscanned(tmp_path, width):
  """One stream, of the whole model, below its first layer."""
  key = np.arange(width, dtype=np.uint32) + 5
  return _state(
    tmp_path,
    {
      f"decoder.layers_0.{_STREAM}.key": key,
      f"decoder.layers_0.{_STREAM}.count": np.uint32(9),
    },
  ), key


def _derived(found):
  """Returns the arrays that were derived, by dotted path."""
  result = {}
  for key, shape, origin in found:
    assert key.role is Role.RNG
    assert len(origin.values or (origin.value,)) == math.prod(shape)
    assert origin.sources
    values = np.array(origin.values, np.uint32).reshape(shape)
    result[".".join(key.path)] = values
  return result


@pytest.mark.parametrize(
  ("width", "is_tunix", "is_fit"),
  [(2, False, True), (4, False, False), (4, True, True), (3, False, False)],
)
def test_keys_of_a_trainer_of_another_kind_are_unfit(
  tmp_path, width, is_tunix, is_fit
):
  state, _ = _scanned(tmp_path, width)
  found = tunix_rng.unfit(state, _SCANNED, _SCANNED, is_tunix=is_tunix)
  assert found.keys() == (set() if is_fit else state.leaves.keys())
  assert all("threefry2x32" in reason for reason in found.values())


@pytest.mark.parametrize("is_tunix", [False, True])
def test_rng_of_another_scan_mode_is_unfit(tmp_path, is_tunix):
  state, _ = _scanned(tmp_path, 2)
  found = tunix_rng.unfit(state, _SCANNED, _UNSCANNED, is_tunix=is_tunix)
  assert found.keys() == state.leaves.keys()
  assert all("no counterpart" in reason for reason in found.values())


def test_wider_keys_give_their_first_words(tmp_path):
  state, keys = _scanned(tmp_path, 4)
  found = _derived(tunix_rng.derive(state, _SCANNED, _SCANNED))
  np.testing.assert_array_equal(found[f"{_ROOT}.key"], keys[0, :2])
  np.testing.assert_array_equal(
    found[f"decoder.layers.{_STREAM}.key"], keys[1:, :2]
  )
  np.testing.assert_array_equal(
    found[f"decoder.layers.{_STREAM}.count"], range(_LAYERS)
  )
  assert found[f"{_ROOT}.count"] == 7


def test_keys_that_fit_are_not_derived(tmp_path):
  state, _ = _scanned(tmp_path, 2)
  assert [*tunix_rng.derive(state, _SCANNED, _SCANNED)] == []


@pytest.mark.parametrize("width", [2, 4])
def test_an_unscanned_model_has_the_models_one_stream(tmp_path, width):
  state, keys = _scanned(tmp_path, width)
  found = _derived(tunix_rng.derive(state, _SCANNED, _UNSCANNED))
  assert found.keys() == {
    f"decoder.layers_0.{_STREAM}.key",
    f"decoder.layers_0.{_STREAM}.count",
  }
  np.testing.assert_array_equal(
    found[f"decoder.layers_0.{_STREAM}.key"], keys[0, :2]
  )
  assert found[f"decoder.layers_0.{_STREAM}.count"] == 7


def test_each_layer_of_a_scanned_model_has_its_own_key(tmp_path):
  state, key = _unscanned(tmp_path, 4)
  found = _derived(tunix_rng.derive(state, _UNSCANNED, _SCANNED))
  assert found.keys() == {
    f"{_ROOT}.key",
    f"{_ROOT}.count",
    f"decoder.layers.{_STREAM}.key",
    f"decoder.layers.{_STREAM}.count",
  }
  np.testing.assert_array_equal(found[f"{_ROOT}.key"], key[:2])
  assert found[f"{_ROOT}.count"] == 9
  layers = found[f"decoder.layers.{_STREAM}.key"]
  assert layers.shape == (_LAYERS, 2)
  assert len({words.tobytes() for words in (key[:2], *layers)}) == _LAYERS + 1
  np.testing.assert_array_equal(
    found[f"decoder.layers.{_STREAM}.count"], [0] * _LAYERS
  )


def test_what_is_derived_is_the_same_every_time(tmp_path):
  state, _ = _unscanned(tmp_path, 4)
  first, second = (
    _derived(tunix_rng.derive(state, _UNSCANNED, _SCANNED)) for _ in range(2)
  )
  assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_nothing_is_derived_for_a_pattern_of_blocks(tmp_path):
  state, _ = _unscanned(tmp_path, 4)
  form = Form("scanned", 1, Grouping("gemma3", _GROUPING.groups))
  assert [*tunix_rng.derive(state, _UNSCANNED, form)] == []


def test_leaves_like_a_reference_have_keys_of_their_own(tmp_path):
  state, _ = _unscanned(tmp_path, 4)
  wanted = {
    StateKey(Role.RNG, ("decoder", "layers", "rngs", name, leaf)): shape
    for name in ("params", "dropout")
    for leaf, shape in (("key", (_LAYERS, 2)), ("count", (_LAYERS,)))
  }
  found = _derived(tunix_rng.derive_like(state, wanted))
  assert {name: v.shape for name, v in found.items()} == {
    ".".join(key.path): shape for key, shape in wanted.items()
  }
  keys = [
    words.tobytes()
    for name, values in found.items()
    if name.endswith("key")
    for words in values
  ]
  assert len(set(keys)) == len(keys) == 2 * _LAYERS
  assert not any(
    values.any() for name, values in found.items() if name.endswith("count")
  )


def test_without_any_stream_nothing_is_derived(tmp_path):
  state = State(leaves={}, optimizer=None, step=None)
  wanted = {StateKey(Role.RNG, ("decoder", "rngs", "params", "key")): (2,)}
  assert [*tunix_rng.derive_like(state, wanted)] == []
