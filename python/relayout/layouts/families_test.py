"""The table of model families."""

from collections import Counter

import pytest

from relayout.errors import OptionError
from relayout.layouts import families


@pytest.mark.parametrize(
  ("model", "block", "pattern"),
  [
    ("llama3.1-8b", "llama2", "flat"),
    ("qwen3-0.6b", "qwen3", "flat"),
    ("qwen3-30b-a3b", "qwen3_moe", "flat"),
    ("mistral-7b", "mistral", "flat"),
    ("mixtral-8x7b", "mixtral", "flat"),
    ("gemma3-4b", "gemma3", "gemma3"),
    ("gemma4-26b", "gemma4", "gemma4"),
    ("llama4-17b-16e", "llama4", "cycle:4"),
    ("gpt-oss-20b", "gpt_oss", "cycle:2"),
    ("deepseek3-671b", "deepseek", "deepseek"),
    ("qwen3-next-80b-a3b", "qwen3_next", "qwen3_next:4"),
  ],
)
def test_family_of(model, block, pattern):
  family = families.family_of(model)
  assert family.block == block
  assert family.pattern == pattern


def test_an_unknown_model_gets_the_nearest_names():
  with pytest.raises(OptionError, match=r"qwen3-0\.6b.*--layer_pattern=flat"):
    families.family_of("qwen3-0.6")


@pytest.mark.parametrize(
  ("name", "model"),
  [
    ("GPT-OSS-20B", "gpt-oss-20b"),
    ("Qwen3-0.6B", "qwen3-0.6b"),
    ("llama3.1-8b-instruct", "llama3.1-8b-Instruct"),
    ("llama3.1-8b-Instruct", "llama3.1-8b-Instruct"),
  ],
)
def test_names_in_another_case(name, model):
  assert families.model_named(name) == model
  assert model in families.family_of(name).models


@pytest.mark.parametrize("name", ["gpt_oss_20b", "GPT-OSS 20b", "gptoss-20b"])
def test_near_misses_are_not_taken_but_told(name):
  with pytest.raises(OptionError, match=r"Did you mean .*gpt-oss-20b"):
    families.family_of(name)


def test_no_two_names_differ_in_case_only():
  models = [model for family in families.FAMILIES for model in family.models]
  assert len({model.casefold() for model in models}) == len(models)


def test_models_that_are_never_scanned_have_no_pattern():
  assert {"qwen3-vl-2b", "weaver-mini", "gemma4-e2b"} <= families.NEVER_SCANNED
  assert "qwen3-4b" not in families.NEVER_SCANNED


def test_no_model_is_in_two_families():
  models = Counter(m for family in families.FAMILIES for m in family.models)
  assert max(models.values()) == 1
