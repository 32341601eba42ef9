"""How each MaxText model family groups its layers when it scans them.

No unscanned checkpoint records this, and leaves of a pattern family can look
just like those of a flat one, so the model's name decides and nothing else.
Facts: the released MaxText 0.2.5, `configs/models/*.yml` (`decoder_block`) and
`layers/nnx_decoders.py`.
"""

import dataclasses
import difflib

from relayout.errors import OptionError


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
  """A decoder block of MaxText.

  Attributes:
    block: Value of `decoder_block`.
    pattern: What is grouped how; "" for a flat family, whose layers all form
      one stack under `decoder.layers`.
    models: MaxText model names.
  """

  block: str
  pattern: str
  models: tuple[str, ...]

  @property
  def is_flat(self) -> bool:
    """Whether all layers form one stack."""
    return not self.pattern


FAMILIES = (
  Family(
    "llama2",
    "",
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
    "",
    ("mistral-7b",),
  ),
  Family(
    "mixtral",
    "",
    (
      "mixtral-8x22b",
      "mixtral-8x7b",
    ),
  ),
  Family(
    "qwen2",
    "",
    (
      "qwen2.5-1.5b",
      "qwen2.5-14b",
      "qwen2.5-7b",
    ),
  ),
  Family(
    "qwen3",
    "",
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
      "qwen3-vl-2b",
      "qwen3-vl-4b",
      "weaver-max",
      "weaver-mini",
    ),
  ),
  Family(
    "qwen3_moe",
    "",
    (
      "qwen3-235b-a22b",
      "qwen3-30b-a3b",
      "qwen3-30b-a3b-base",
      "qwen3-480b-a35b",
      "qwen3-omni-30b-a3b",
      "qwen3-vl-30b-a3b",
    ),
  ),
  Family(
    "qwen3_custom_moe",
    "",
    ("qwen3-custom-30b-a3b",),
  ),
  Family(
    "gemma",
    "",
    (
      "gemma-2b",
      "gemma-7b",
    ),
  ),
  Family(
    "gemma2",
    "",
    (
      "gemma2-27b",
      "gemma2-2b",
      "gemma2-9b",
    ),
  ),
  Family(
    "gpt3",
    "",
    (
      "gpt3-175b",
      "gpt3-22b",
      "gpt3-52k",
      "gpt3-6b",
    ),
  ),
  Family(
    "deepseek",
    "a stack of dense layers, then one of mixture-of-experts layers",
    (
      "deepseek-custom",
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
    "deepseek4",
    "single hash layers, then a stack of blocks of two layers",
    (
      "deepseek4-284b",
      "deepseek4-tiny",
    ),
  ),
  Family(
    "envy",
    "a stack of cycles of dense and mixture-of-experts layers",
    (
      "envy-switch-base",
      "envy-switch-large",
      "envy-switch-xxl",
      "envy-test",
    ),
  ),
  Family(
    "gemma3",
    "a stack of blocks of six layers and a remainder",
    (
      "gemma3-12b",
      "gemma3-27b",
      "gemma3-4b",
    ),
  ),
  Family(
    "gemma4",
    "a stack of blocks of six layers (five local, one global) and a remainder",
    (
      "gemma4-26b",
      "gemma4-31b",
    ),
  ),
  Family(
    "gemma4_small",
    "layers that all differ; MaxText never scans them",
    (
      "gemma4-e2b",
      "gemma4-e4b",
    ),
  ),
  Family(
    "gpt_oss",
    "a stack of pairs of layers",
    (
      "gpt-oss-120b",
      "gpt-oss-20b",
    ),
  ),
  Family(
    "llama4",
    "a stack of cycles of four layers",
    (
      "llama4-17b-128e",
      "llama4-17b-16e",
    ),
  ),
  Family(
    "olmo3",
    "a stack of cycles of four layers",
    (
      "olmo3-32b",
      "olmo3-7b",
      "olmo3-7b-pt",
    ),
  ),
  Family(
    "qwen3_5",
    "a stack of cycles of four layers",
    (
      "qwen3.5-35b-a3b",
      "qwen3.5-35b-a3b-fp8",
      "qwen3.5-397b-a17b",
      "qwen3.5-397b-a17b-fp8",
    ),
  ),
  Family(
    "qwen3_next",
    "a stack of cycles of four layers and a remainder",
    ("qwen3-next-80b-a3b",),
  ),
)

NEVER_SCANNED = frozenset(
  {
    "qwen3-omni-30b-a3b",
    "qwen3-vl-2b",
    "qwen3-vl-30b-a3b",
    "qwen3-vl-4b",
    "weaver-max",
    "weaver-mini",
  }
)
"""Models of flat families that MaxText accepts with scan_layers=False only.

Their vision encoder feeds single layers (`deepstack_visual_indexes_for_vit`).
"""

_BY_MODEL = {model: family for family in FAMILIES for model in family.models}


def family_of(model_name: str) -> Family:
  """Returns the family of a MaxText model name.

  Raises:
    OptionError: If the name is not in the table; lists the nearest ones.
  """
  try:
    return _BY_MODEL[model_name]
  except KeyError:
    near = difflib.get_close_matches(model_name, _BY_MODEL, n=3)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    raise OptionError(
      f"--model_name={model_name}: not a model of the table.{hint} If all "
      "layers of the model form one stack, pass --layer_pattern=flat instead"
    ) from None
