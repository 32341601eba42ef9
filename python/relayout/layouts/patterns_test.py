"""The patterns' spellings, and which models have which."""

import pytest

from relayout.errors import OptionError
from relayout.layouts import families, patterns


@pytest.mark.parametrize(
  ("text", "canonical"),
  [
    ("flat", "flat"),
    ("cycle:4", "cycle:4"),
    ("cycle:2", "cycle:2"),
    ("deepseek", "deepseek"),
    ("deepseek4", "deepseek4:3"),
    ("deepseek4:0", "deepseek4:0"),
    ("gemma3", "gemma3"),
    ("gemma4", "gemma4"),
    ("qwen3_next", "qwen3_next:4"),
    ("qwen3_5:2", "qwen3_5:2"),
    ("unscanned", "unscanned"),
    ("llama2", "flat"),
    ("qwen3", "flat"),
    ("gpt_oss", "cycle:2"),
    ("llama4", "cycle:4"),
    ("gemma4_small", "unscanned"),
  ],
)
def test_parse_pattern(text, canonical):
  pattern = patterns.parse_pattern(text)
  assert pattern.text == canonical
  assert patterns.parse_pattern(canonical) == pattern


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("spiral", "not a pattern.*flat.*cycle:N.*gpt_oss"),
    ("", "not a pattern"),
    ("cycle:", "not a pattern"),
    ("cycle:four", "not a pattern"),
    ("cycle:100", "not a pattern"),
    ("Flat", "not a pattern"),
    ("cycle", "say how many layers: cycle:N"),
    ("cycle:0", "cycle takes 1 or more"),
    ("qwen3_next:1", "takes 2 or more"),
    ("flat:2", "flat has no number"),
  ],
)
def test_a_text_that_is_no_pattern(text, message):
  with pytest.raises(OptionError, match=message):
    patterns.parse_pattern(text)


@pytest.mark.parametrize(
  ("model", "text"),
  [
    ("llama3.1-8b", "flat"),
    ("deepseek3-671b", "deepseek"),
    ("deepseek-custom", "deepseek_engram"),
    ("gpt-oss-20b", "cycle:2"),
    ("qwen3-vl-2b", "unscanned"),
    ("qwen3-0.6b", "flat"),
  ],
)
def test_pattern_of(model, text):
  assert patterns.pattern_of(model).text == text


def test_every_family_spells_its_pattern_canonically():
  texts = {family.pattern for family in families.FAMILIES}
  assert {patterns.parse_pattern(text).text for text in texts} == texts


def test_names_of_a_pattern_are_apart():
  for family in families.FAMILIES:
    runs = patterns.parse_pattern(family.pattern).runs
    names = [s.name for run in runs for s in (*run.block, *run.remainder)]
    assert len(set(names)) == len(names), family.pattern


def test_the_slots_of_a_block_follow_each_other():
  for family in families.FAMILIES:
    for run in patterns.parse_pattern(family.pattern).runs:
      for slots in (run.block, run.remainder):
        starts = [slot.start for slot in slots]
        assert starts == [0, *(slot.stop for slot in slots)][: len(slots)]
