"""Patterns that keep leaves and drop them."""

import pytest

from relayout.convert.selection import Selection, check_patterns, split
from relayout.errors import OptionError
from relayout.layouts.state import Role, StateKey
from tests.support.leaves import stored_leaf, weight
from tests.support.specs import spec_of_v2

_WI = "decoder.layers_0.mlp.wi.kernel"
_WO = "decoder.layers_1.mlp.wo.kernel"
_COUNT = StateKey(Role.COUNT)


def _leaves():
  spec = spec_of_v2((4,), (4,))
  return {
    weight(_WI): stored_leaf(f"{_WI}.value", spec, item="model_params"),
    weight(_WO): stored_leaf(f"{_WO}.value", spec, item="model_params"),
    StateKey(Role.MOMENT, tuple(_WI.split(".")), "mu"): stored_leaf(
      f"opt_state.0.mu.{_WI}.value", spec, item="optimizer_state"
    ),
    _COUNT: stored_leaf(
      "opt_state.0.count.value", spec, item="optimizer_state"
    ),
  }


def _split(keep=(), drop=()):
  """Returns the labels of what goes on, and the reasons of the others."""
  selection = Selection(keep, drop)
  kept, dropped = split(_leaves().items(), selection)
  selection.check_used()
  return (
    {stored.label for stored in kept.values()},
    {dropped.leaf.label: dropped.reason for dropped in dropped},
  )


_LABELS = {stored.label for stored in _leaves().values()}
_WI_LABEL = f"model_params/{_WI}.value"
_WO_LABEL = f"model_params/{_WO}.value"
_MU_LABEL = f"optimizer_state/opt_state.0.mu.{_WI}.value"


def test_without_patterns_everything_goes_on():
  assert _split() == (_LABELS, {})


@pytest.mark.parametrize(
  "pattern",
  [_WO, "*wo*", "decoder.layers_1.*", "model_params/*.wo.kernel.value"],
)
def test_a_pattern_drops_by_model_path_or_stored_name(pattern):
  kept, dropped = _split(drop=(pattern,))
  assert dropped == {_WO_LABEL: f"--drop={pattern}"}
  assert kept == _LABELS - dropped.keys()


def test_a_pattern_takes_the_moments_of_a_weight_too():
  _, dropped = _split(drop=("*wi*",))
  assert dropped.keys() == {_WI_LABEL, _MU_LABEL}
  _, dropped = _split(drop=("optimizer_state/*.mu.*",))
  assert dropped.keys() == {_MU_LABEL}


def test_only_what_is_kept_goes_on_and_counters():
  kept, dropped = _split(keep=("*wi*",))
  assert _WO_LABEL not in kept
  assert dropped == {_WO_LABEL: "matches no --keep pattern"}


def test_counters_can_be_dropped_by_their_name():
  _, dropped = _split(drop=("*.count.value",))
  assert [*dropped] == ["optimizer_state/opt_state.0.count.value"]


def test_drop_goes_before_keep():
  _, dropped = _split(keep=("decoder.*",), drop=("*wo*",))
  assert dropped == {_WO_LABEL: "--drop=*wo*"}


@pytest.mark.parametrize("option", ["keep", "drop"])
@pytest.mark.parametrize("pattern", ["decoder.layers", "*.wi", "Decoder*"])
def test_a_pattern_that_matches_nothing_is_refused(option, pattern):
  with pytest.raises(OptionError) as error:
    _split(**{option: (pattern, "*")})
  assert f"--{option}={pattern}: matches no leaf" in str(error.value)


def test_each_of_two_patterns_that_match_one_leaf_is_used():
  _split(drop=("*wi*", "*mlp.wi*"))


def test_an_empty_pattern_is_refused():
  with pytest.raises(OptionError, match="--drop: the pattern is empty"):
    check_patterns(["*", ""], "--drop")
