"""The released Tunix goes on from converted pre-training checkpoints.

Its checkpoint manager (0.1.7) refuses a tree that differs in a single leaf and
casts types in silence, so these tests compare every value that the trainer has
afterwards, and the losses of the steps that follow.
"""

import pytest
from harness import compare, post_training_cases


def ids(case):
  return case.name


@pytest.mark.parametrize("case", post_training_cases.POST_TRAINING, ids=ids)
class TestPostTraining:
  def test_full_state_is_restored_bit_for_bit(self, outcome):
    assert not compare.differences(outcome.want, outcome.got)

  def test_starts_after_the_updates_of_pre_training(self, outcome):
    assert outcome.converted[-1] == outcome.want_step
    assert outcome.first_step == outcome.want_step

  def test_next_losses_are_those_of_the_source(self, outcome):
    assert len(set(outcome.losses)) == 3
    assert outcome.losses == outcome.want_losses

  def test_wrappers_count_the_updates(self, outcome, case):
    assert outcome.counters.items() >= case.counters.items()
    assert outcome.counters["step"] == outcome.want_step
    assert outcome.gradients == 0

  def test_every_stream_has_a_key_of_its_own(self, outcome):
    assert outcome.rng_kept
    assert outcome.num_different_keys == outcome.num_keys > 0

  def test_next_saves_happen(self, outcome):
    # checkpoint_period is 2, and the last update of a run is saved, too.
    assert outcome.want_step == 5
    assert outcome.saved == sorted({*outcome.converted, 6, 8})

  def test_source_is_left_alone(self, outcome):
    assert outcome.source_kept


@pytest.mark.parametrize(
  "case", post_training_cases.POST_TRAINING_SWAPPED, ids=ids
)
def test_tunix_accepts_wrong_moments_and_the_comparisons_do_not(outcome):
  lines = compare.differences(outcome.want, outcome.got)
  moments = {k for k in outcome.want if k.startswith(("mu/", "nu/"))}
  assert moments
  assert {line.partition(":")[0] for line in lines} == moments
  assert outcome.losses[0] == outcome.want_losses[0]
  assert outcome.losses[1:] != outcome.want_losses[1:]
