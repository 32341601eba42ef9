"""The released MaxText resumes pre-training from converted checkpoints.

MaxText's full-state loader checks the weights only, so these tests look at
the live state that it restored: every weight, moment and count, bit by bit,
against the Tunix checkpoint read with TensorStore.
"""

import pytest
from harness import cases, compare


def ids(case):
  return case.name


@pytest.mark.parametrize("case", cases.RESUME, ids=ids)
class TestResume:
  def test_full_state_is_restored_bit_for_bit(self, outcome):
    assert not compare.differences(outcome.want, outcome.got)

  def test_starts_at_the_right_step(self, outcome):
    assert outcome.first_step == outcome.want_step

  def test_directory_is_numbered_as_maxtext_does(self, outcome):
    last = outcome.converted[-1]
    assert last == max(outcome.want_step - 1, 0)
    assert outcome.saved[last] == outcome.want_step

  def test_first_loss_is_that_of_the_source(self, outcome):
    assert outcome.losses[outcome.first_step] == outcome.want_loss

  def test_next_due_save_happens(self, outcome):
    # checkpoint_period is 2 and step 0 is never due.
    due = [n for n in outcome.losses if n % 2 == 0 and n > 0]
    assert due
    new = {
      number: step
      for number, step in outcome.saved.items()
      if number not in outcome.converted
    }
    # The last step of a run is saved, due or not.
    assert new == {n: n + 1 for n in {*due, max(outcome.losses)}}

  def test_source_is_left_alone(self, outcome):
    assert outcome.source_kept


@pytest.mark.parametrize("case", cases.RESUME_SWAPPED, ids=ids)
def test_maxtext_accepts_wrong_moments_and_the_comparison_does_not(outcome):
  lines = compare.differences(outcome.want, outcome.got)
  moments = {k for k in outcome.want if k.startswith(("mu/", "nu/"))}
  assert moments
  assert {line.partition(":")[0] for line in lines} == moments
  # The first loss cannot tell: it is the weights' alone.
  assert outcome.losses[outcome.first_step] == outcome.want_loss


@pytest.mark.parametrize("case", cases.KEEP_NUMBERING, ids=ids)
def test_kept_numbering_resumes_but_misses_a_save(outcome):
  # Directory 4 holds step 4, so the loop's step 4, due for a save, finds its
  # directory taken: skipped without a word, and 6 is the first one saved.
  assert outcome.converted == [2, 4]
  assert outcome.first_step == 4
  assert outcome.saved == {2: 2, 4: 4, 6: 7}
  # To MaxText directory 4 says that five steps are done.
  assert "already exists at step 4" in outcome.error


@pytest.mark.parametrize("case", cases.LOAD_PARAMETERS, ids=ids)
class TestLoadParametersPath:
  def test_weights_are_loaded_and_the_rest_is_fresh(self, outcome):
    assert not compare.differences(outcome.want, outcome.got)

  def test_starts_at_step_zero(self, outcome):
    assert outcome.first_step == 0

  def test_first_loss_is_that_of_the_source(self, outcome):
    assert outcome.losses[0] == outcome.want_loss


@pytest.mark.parametrize("case", cases.STACKED_LOSS, ids=ids)
def test_stacking_as_expected_here_does_not_change_the_loss(outcome):
  unscanned, scanned = outcome
  assert scanned == pytest.approx(unscanned, rel=1e-5)
