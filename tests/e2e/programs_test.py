"""The released programs under relayout's runner: none fails silently."""

import math

import pytest
from harness import program_cases


def _case(name):
  [case] = [case for case in program_cases.CASES if case.name == name]
  return pytest.mark.parametrize("case", [case], ids=[name])


@_case("fine_tune")
class TestFineTune:
  def test_trains_with_synthetic_data(self, outcome):
    assert outcome["saved"] == {1: 1, 2: 2}

  def test_a_budget_that_is_used_up_is_an_error(self, outcome):
    message = outcome["nothing to do"]
    assert "steps=2: nothing to do, for 2 updates are done" in message

  def test_no_data_is_an_error(self, outcome):
    assert "not one of 2 updates was made" in outcome["no data"]
    assert "unhashable type" in outcome["no data"]

  def test_starts_from_a_full_state(self, outcome):
    assert outcome["saved from full state"] == {3: 3}
    assert len(outcome["losses"]) == 1
    assert outcome["losses"] == outcome["losses of the run itself"]


@_case("prefer")
class TestPrefer:
  def test_starts_from_the_full_state_of_fine_tuning(self, outcome):
    assert outcome["saved"] == {3: 3, 4: 4}

  def test_the_reference_model_is_what_it_starts_from(self, outcome):
    # A policy that is the reference has the loss of a coin.
    assert outcome["losses"][0] == pytest.approx(math.log(2), abs=1e-3)
    assert outcome["losses"][1] != outcome["losses"][0]


@_case("pretrain")
class TestPretrain:
  def test_a_level_that_it_does_not_see_is_an_error(self, outcome):
    assert "would start from scratch" in outcome["level"]
    assert "actor/4" in outcome["level"]

  def test_loads_the_full_state_of_any_layout(self, outcome):
    assert outcome["full state"] == []
    assert outcome["first step"] == 4

  def test_loads_weights_of_any_layout(self, outcome):
    assert outcome["weights"] == []

  def test_the_source_is_left_alone(self, outcome):
    assert "relayout" not in outcome["source kept"]
    assert "items" not in outcome["source kept"]


@_case("distill")
def test_distills_with_the_released_tunix_and_ends_in_time(outcome):
  # Its data has no end, and the program by itself counts no steps.
  assert len(outcome["losses"]) == 2
  assert outcome["saved"][2] == 2
  assert set(outcome["saved"]) <= {1, 2}


@_case("imports")
def test_says_what_is_missing(outcome):
  assert "tpu_inference" in outcome["train_rl"]
  assert "install" in outcome["train_rl"]
