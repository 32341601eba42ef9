"""Every trainer hands over to pre-training and back, under our manager.

The table of `docs/matrix.md` shows these cases.
"""

import pytest
from harness import compare, matrix_cases


def ids(case):
  return case.name


@pytest.mark.parametrize("case", matrix_cases.cases_to_run(), ids=ids)
class TestMatrix:
  def test_trains_and_saves_when_due(self, outcome):
    # A schedule that warms up leaves the weights of the first update alone.
    assert len(set(outcome.losses.values())) >= 5
    # Orbax may save the first update of a run besides.
    assert outcome.saved in ([2, 4, 6], [1, 2, 4, 6])

  def test_resumes_itself_bit_for_bit(self, outcome):
    assert outcome.resumed_at == 4
    assert outcome.resumed_losses == {n: outcome.losses[n] for n in (4, 5)}
    assert not compare.differences(outcome.end, outcome.resumed_end)

  def test_a_cold_start_is_something_else(self, outcome):
    cold = [outcome.losses[n] for n in (0, 1)]
    assert not set(cold) & set(outcome.resumed_losses.values())
    assert outcome.cold_end.keys() == outcome.end.keys()
    assert compare.differences(outcome.cold_end, outcome.resumed_end)

  def test_pretraining_goes_on_from_the_same_directory(self, outcome):
    assert not compare.differences(outcome.handed_over, outcome.pretrained)
    assert outcome.pretraining_losses.keys() == {4}
    assert outcome.pretraining_saved == {4: 5}

  def test_items_are_those_that_pretraining_writes(self, outcome):
    assert len(outcome.tree) > 30
    assert outcome.tree == outcome.pretraining_tree

  def test_the_next_loss_is_that_of_the_weights(self, outcome, case):
    # Only fine-tuning has the loss function and the batch of pre-training.
    if case.trainer == "SFT":
      assert outcome.pretraining_losses[4] == outcome.losses[4]

  def test_the_way_back(self, outcome):
    assert not compare.differences(outcome.way_back, outcome.back)
    assert outcome.back_losses.keys() == {5}
    assert outcome.back_saved == [4, 6]
