"""Which pattern each MaxText model groups its layers in when it scans them.

No unscanned checkpoint records this, and leaves of a pattern family can look
just like those of a flat one, so the model's name decides and nothing else.
Facts: the released MaxText 0.2.5, `configs/models/*.yml`. What the patterns
are is in `patterns.py`; `docs/families.md` shows both.
"""

import dataclasses
import difflib

from relayout.errors import OptionError


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
  """Models that group their layers alike.

  Attributes:
    block: Value of `decoder_block`.
    pattern: Text of the pattern, as `patterns.parse_pattern` reads it.
    models: MaxText model names.
  """

  block: str
  pattern: str
  models: tuple[str, ...]


FAMILIES = (
  Family(
    "llama2",
    "flat",
    (
      "llama2-13b",
      "llama2-70b",
      "llama2-7b",
      "llama3-405b",
      "llama3-70b",
      "llama3-8b",
      "llama3.1-405b",
      "llama3.1-70b",
      "llama3.1-70b-Instruct",
      "llama3.1-8b",
      "llama3.1-8b-Instruct",
      "llama3.3-70b",
    ),
  ),
  Family(
    "mistral",
    "flat",
    ("mistral-7b",),
  ),
  Family(
    "mixtral",
    "flat",
    (
      "mixtral-8x22b",
      "mixtral-8x7b",
    ),
  ),
  Family(
    "qwen2",
    "flat",
    (
      "qwen2.5-1.5b",
      "qwen2.5-14b",
      "qwen2.5-7b",
    ),
  ),
  Family(
    "qwen3",
    "flat",
    (
      "qwen3-0.6b",
      "qwen3-1.7b",
      "qwen3-1.7b-base",
      "qwen3-14b",
      "qwen3-14b-base",
      "qwen3-32b",
      "qwen3-4b",
      "qwen3-4b-base",
      "qwen3-4b-thinking-2507",
      "qwen3-8b",
      "qwen3-8b-base",
    ),
  ),
  Family(
    "qwen3",
    "unscanned",
    (
      "qwen3-vl-2b",
      "qwen3-vl-4b",
      "weaver-max",
      "weaver-mini",
    ),
  ),
  Family(
    "qwen3_moe",
    "flat",
    (
      "qwen3-235b-a22b",
      "qwen3-30b-a3b",
      "qwen3-30b-a3b-base",
      "qwen3-480b-a35b",
    ),
  ),
  Family(
    "qwen3_moe",
    "unscanned",
    (
      "qwen3-omni-30b-a3b",
      "qwen3-vl-30b-a3b",
    ),
  ),
  Family(
    "qwen3_custom_moe",
    "flat",
    ("qwen3-custom-30b-a3b",),
  ),
  Family(
    "gemma",
    "flat",
    (
      "gemma-2b",
      "gemma-7b",
    ),
  ),
  Family(
    "gemma2",
    "flat",
    (
      "gemma2-27b",
      "gemma2-2b",
      "gemma2-9b",
    ),
  ),
  Family(
    "gpt3",
    "flat",
    (
      "gpt3-175b",
      "gpt3-22b",
      "gpt3-52k",
      "gpt3-6b",
    ),
  ),
  Family(
    "deepseek",
    "deepseek",
    (
      "deepseek2-16b",
      "deepseek2-236b",
      "deepseek3-671b",
      "deepseek3-671b-2dfsdp",
      "deepseek3-671b-batchsplit",
      "deepseek3-test",
      "deepseek3-tiny",
      "deepseek3.2-671b",
      "kimi-k2-1t",
    ),
  ),
  Family(
    "deepseek",
    "deepseek_engram",
    ("deepseek-custom",),
  ),
  Family(
    "deepseek4",
    "deepseek4:3",
    (
      "deepseek4-284b",
      "deepseek4-tiny",
    ),
  ),
  Family(
    "envy",
    "cycle:2",
    (
      "envy-switch-base",
      "envy-switch-large",
      "envy-switch-xxl",
      "envy-test",
    ),
  ),
  Family(
    "gemma3",
    "gemma3",
    (
      "gemma3-12b",
      "gemma3-27b",
      "gemma3-4b",
    ),
  ),
  Family(
    "gemma4",
    "gemma4",
    (
      "gemma4-26b",
      "gemma4-31b",
    ),
  ),
  Family(
    "gemma4_small",
    "unscanned",
    (
      "gemma4-e2b",
      "gemma4-e4b",
    ),
  ),
  Family(
    "gpt_oss",
    "cycle:2",
    (
      "gpt-oss-120b",
      "gpt-oss-20b",
    ),
  ),
  Family(
    "llama4",
    "cycle:4",
    (
      "llama4-17b-128e",
      "llama4-17b-16e",
    ),
  ),
  Family(
    "olmo3",
    "cycle:4",
    (
      "olmo3-32b",
      "olmo3-7b",
      "olmo3-7b-pt",
    ),
  ),
  Family(
    "qwen3_5",
    "qwen3_5:4",
    (
      "qwen3.5-35b-a3b",
      "qwen3.5-35b-a3b-fp8",
      "qwen3.5-397b-a17b",
      "qwen3.5-397b-a17b-fp8",
    ),
  ),
  Family(
    "qwen3_next",
    "qwen3_next:4",
    ("qwen3-next-80b-a3b",),
  ),
)

NEVER_SCANNED = frozenset(
  model
  for family in FAMILIES
  for model in family.models
  if family.pattern == "unscanned"
)
"""Models that MaxText accepts with scan_layers=False only.

Their vision encoder feeds single layers (`deepstack_visual_indexes_for_vit`),
or all their layers differ (gemma4_small).
"""

_BY_MODEL = {model: family for family in FAMILIES for model in family.models}
_BY_PLAIN_NAME = {model.casefold(): model for model in _BY_MODEL}


def model_named(name: str) -> str:
  """Returns the model name as MaxText spells it; `name` in any case.

  Raises:
    OptionError: If the name is not in the table; lists the nearest ones.
  """
  plain = name.casefold()
  if plain in _BY_PLAIN_NAME:
    return _BY_PLAIN_NAME[plain]
  near = difflib.get_close_matches(plain.replace("_", "-"), _BY_PLAIN_NAME, n=3)
  names = ", ".join(_BY_PLAIN_NAME[model] for model in near)
  hint = f" Did you mean {names}?" if near else ""
  raise OptionError(
    f"--model_name={name}: not a model of the table.{hint} If all "
    "layers of the model form one stack, pass --layer_pattern=flat instead"
  )


def family_of(model_name: str) -> Family:
  """Returns the family of a MaxText model name.

  Raises:
    OptionError: If the name is not in the table; lists the nearest ones.
  """
  return _BY_MODEL[model_named(model_name)]


def pattern_of_config(config: object) -> str:
  """Returns the pattern of the model that a MaxText configuration makes.

  Args:
    config: Has attributes `model_name` and `decoder_block`, or lacks them.

  Returns:
    The pattern's text; "" if the name is not in the table, and the models
    with that decoder block do not all have one pattern.
  """
  name = str(getattr(config, "model_name", "")).casefold()
  if name in _BY_PLAIN_NAME:
    return _BY_MODEL[_BY_PLAIN_NAME[name]].pattern
  block = getattr(config, "decoder_block", "")
  block = str(getattr(block, "value", block))
  patterns = {
    family.pattern
    for family in FAMILIES
    if family.block == block and family.pattern != "unscanned"
  }
  return patterns.pop() if len(patterns) == 1 else ""
