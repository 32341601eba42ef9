"""The table of model families says what the released MaxText does."""

import pytest
from harness import cases, maxtext_run

from relayout.layouts import families


def test_every_model_is_in_its_family():
  table = {
    model: family.block
    for family in families.FAMILIES
    for model in family.models
  }
  assert table == maxtext_run.decoder_blocks()


@pytest.mark.parametrize("case", cases.GROUPINGS, ids=lambda case: case.name)
def test_flat_families_are_those_that_maxtext_stacks_alike(outcome):
  table = {family.block: family.is_flat for family in families.FAMILIES}
  assert table == outcome


def test_models_that_maxtext_never_scans_are_marked():
  found = maxtext_run.models_that_are_never_scanned()
  assert found == families.NEVER_SCANNED
