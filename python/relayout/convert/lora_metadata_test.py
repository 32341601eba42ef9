"""The LoRA configuration that a target records."""

import json
import re

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import LayoutError
from tests.support import golden, stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")


def _recorded(source, out, options):
  """Converts; returns the recorded configuration and the target's arrays."""
  convert(source, out, options)
  [step] = out.iterdir()
  metadata = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  names = stores.array_names(step / "items")
  return metadata["custom_metadata"]["lora"], names


def _modules(names) -> dict[str, bool]:
  """Returns the modules that have weights, and whether they have adapters."""
  found: dict[str, bool] = {}
  for name in names:
    if not name.startswith("params.params."):
      continue
    *module, leaf = name.removeprefix("params.params.").split(".")
    if module[-1] == "array":  # of a quantized weight
      *module, leaf = module[:-1]
    path = "/".join(module)
    has_adapter = "_lora_" in leaf
    found[path] = found.get(path, False) or has_adapter
  return found


@pytest.mark.parametrize(
  ("name", "options", "rank", "num_modules"),
  [
    ("lora_sft_unscan", _KEEP, 4, 28),
    ("lora_sft_unscan", _FLAT, 4, 7),
    ("lora_sft_scan_r2_dtf32", _KEEP, 2, 7),
    ("qlora_int8_fullstate_unscan", _KEEP, 4, 28),
    ("qlora_int8_fullstate_unscan", _FLAT, 4, 7),
  ],
)
def test_the_path_matches_the_modules_with_adapters_alone(
  tmp_path, name, options, rank, num_modules
):
  source = golden.checkpoints(name)
  recorded, names = _recorded(source, tmp_path / "out", options)
  assert recorded["enable_lora"] is True
  assert recorded["lora_rank"] == rank
  pattern = re.compile(recorded["lora_module_path"])
  modules = _modules(names)
  assert sum(modules.values()) == num_modules
  for module, has_adapter in modules.items():
    # qwix wants the whole path of a module to match.
    assert bool(pattern.fullmatch(module)) is has_adapter, module


def test_full_checkpoints_have_modules_without_adapters(tmp_path):
  """So that the test above can fail for a pattern that matches everything."""
  source = golden.checkpoints("qlora_int8_fullstate_unscan")
  _, names = _recorded(source, tmp_path / "out", _KEEP)
  assert not all(_modules(names).values())


def test_the_path_names_the_targets(tmp_path):
  source = golden.checkpoints("lora_sft_scan_r2_dtf32")
  recorded, _ = _recorded(source, tmp_path / "out", _KEEP)
  assert recorded["lora_module_path"] == (
    "(.*/)?(mlp/wi_0|mlp/wi_1|mlp/wo|self_attention/key|self_attention/out"
    "|self_attention/query|self_attention/value)"
  )


def test_several_ranks_write_nothing(tmp_path):
  for layer, rank in enumerate((2, 3)):
    prefix = f"decoder.layers_{layer}.mlp.wo.kernel_lora"
    stores.write_item(
      tmp_path / "in/4/model_params",
      {
        f"{prefix}_a.value": np.ones((8, rank), np.float32),
        f"{prefix}_b.value": np.ones((rank, 6), np.float32),
      },
    )
  with pytest.raises(LayoutError, match="several ranks"):
    convert(tmp_path / "in", tmp_path / "out", _KEEP)
  assert not (tmp_path / "out").exists()
