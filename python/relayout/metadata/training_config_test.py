import dataclasses
import types

import pytest

from relayout.metadata.training_config import (
  checkpoint_custom_metadata,
  form_metadata,
  lora_metadata,
)


def _config(**lora):
  section = types.SimpleNamespace(
    enable_lora=bool(lora),
    lora_rank=0,
    lora_alpha=0.0,
    lora_module_path="",
    lora_weight_qtype=None,
    lora_tile_size=None,
    lora_restore_path="/somewhere",
  )
  vars(section).update(lora)
  return types.SimpleNamespace(
    scan_layers=True, param_scan_axis=1, model_name="qwen3-0.6b", lora=section
  )


def test_no_configuration_records_nothing():
  assert checkpoint_custom_metadata(None) == {}


def test_scan_layers_is_recorded_either_way():
  config = _config()
  assert checkpoint_custom_metadata(config) == {
    "scan_layers": True,
    "param_scan_axis": 1,
  }
  config.scan_layers = False
  assert checkpoint_custom_metadata(config) == {"scan_layers": False}


def test_what_a_configuration_has_not_is_not_recorded():
  config = types.SimpleNamespace(scan_layers=True)
  assert checkpoint_custom_metadata(config) == {"scan_layers": True}
  assert checkpoint_custom_metadata(types.SimpleNamespace()) == {}


def test_layer_pattern():
  recorded = checkpoint_custom_metadata(_config(), layer_pattern="cycle:6")
  assert recorded["layer_pattern"] == "cycle:6"


def test_lora_only_with_a_rank():
  assert "lora" not in checkpoint_custom_metadata(_config(lora_alpha=8.0))
  recorded = checkpoint_custom_metadata(
    _config(lora_rank=4, lora_alpha=8.0, lora_module_path=".*wo")
  )
  assert recorded["lora"] == {
    "enable_lora": True,
    "lora_rank": 4,
    "lora_module_path": ".*wo",
    "lora_alpha": 8.0,
  }


def test_quantization_and_an_alpha_that_is_not_set():
  recorded = checkpoint_custom_metadata(
    _config(lora_rank=4, lora_weight_qtype="int8", lora_tile_size=32)
  )
  assert recorded["lora"] == {
    "enable_lora": True,
    "lora_rank": 4,
    "lora_module_path": "",
    "lora_weight_qtype": "int8",
    "lora_tile_size": 32,
  }


def test_a_section_may_be_a_dict():
  config = _config(lora_rank=4, lora_module_path=".*wo")
  as_object = checkpoint_custom_metadata(config)
  config.lora = vars(config.lora)
  assert checkpoint_custom_metadata(config) == as_object


def test_a_frozen_dataclass_will_do():
  @dataclasses.dataclass(frozen=True)
  class Config:
    scan_layers: bool = False

  assert checkpoint_custom_metadata(Config()) == {"scan_layers": False}


@pytest.mark.parametrize(
  ("scanned", "axis", "want"),
  [
    (True, 0, {"scan_layers": True, "param_scan_axis": 0}),
    (True, None, {"scan_layers": True}),
    (False, 1, {"scan_layers": False}),
  ],
)
def test_form(scanned, axis, want):
  assert form_metadata(scan_layers=scanned, scan_axis=axis) == want


def test_alpha_of_zero_is_recorded_where_it_is_known():
  assert lora_metadata(2, "m", alpha=0.0)["lora_alpha"] == 0.0
  assert "lora_alpha" not in lora_metadata(2, "m")
