"""The table of model families."""

from collections import Counter

import pytest

from relayout.errors import OptionError
from relayout.layouts import families


@pytest.mark.parametrize(
  ("model", "block", "is_flat"),
  [
    ("llama3.1-8b", "llama2", True),
    ("qwen3-0.6b", "qwen3", True),
    ("qwen3-30b-a3b", "qwen3_moe", True),
    ("mistral-7b", "mistral", True),
    ("mixtral-8x7b", "mixtral", True),
    ("gemma3-4b", "gemma3", False),
    ("gemma4-26b", "gemma4", False),
    ("llama4-17b-16e", "llama4", False),
    ("gpt-oss-20b", "gpt_oss", False),
    ("deepseek3-671b", "deepseek", False),
    ("qwen3-next-80b-a3b", "qwen3_next", False),
  ],
)
def test_family_of(model, block, is_flat):
  family = families.family_of(model)
  assert family.block == block
  assert family.is_flat is is_flat


def test_an_unknown_model_gets_the_nearest_names():
  with pytest.raises(OptionError, match=r"qwen3-0\.6b.*--layer_pattern=flat"):
    families.family_of("qwen3-0.6")


def test_no_model_is_in_two_families():
  models = Counter(m for family in families.FAMILIES for m in family.models)
  assert max(models.values()) == 1
