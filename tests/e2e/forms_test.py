"""The released MaxText resumes from checkpoints in another form.

Scanned becomes unscanned and the reverse, for a dense model, a mixture of
experts, and one whose layers come in blocks.
"""

import pytest
from harness import compare, form_cases


def ids(case):
  return case.name


@pytest.mark.parametrize("case", form_cases.FORMS, ids=ids)
class TestForms:
  def test_full_state_is_restored_bit_for_bit(self, outcome):
    assert not compare.differences(outcome.want, outcome.got)

  def test_goes_on_where_the_source_was(self, outcome):
    assert outcome.first_step == outcome.want_step
    assert outcome.converted[-1] == outcome.want_step - 1

  def test_first_loss_is_that_of_the_source(self, outcome):
    assert outcome.losses[outcome.first_step] == outcome.want_loss

  def test_source_is_left_alone(self, outcome):
    assert outcome.source_kept
