"""With the configuration of the released MaxText 0.2.5."""

import json
import pathlib

import pytest
from maxtext.configs import pyconfig

from relayout.errors import LayoutError
from relayout.layouts.run_config import (
  sync_lora_metadata,
  verify_and_sync_scan_layers,
)
from relayout.metadata.training_config import (
  DEFAULTS,
  LORA,
  checkpoint_custom_metadata,
  member,
)
from tests.support import golden

_BASE = pathlib.Path(pyconfig.__file__).with_name("base.yml")
_UNSCANNED = golden.checkpoints("sft_unscan") / "4"


def _config(tmp_path, *flags):
  fixed = (
    "run_name=test",
    f"base_output_directory={tmp_path}",
    "hardware=cpu",
    "skip_jax_distributed_system=true",
    "log_config=false",
  )
  return pyconfig.initialize(["test", str(_BASE), *fixed, *flags])


def test_defaults_are_those_of_maxtext(tmp_path):
  config = _config(tmp_path)
  for name, value in DEFAULTS.items():
    section = config.lora if name.startswith(LORA) else config
    assert member(section, name) == value, name


def test_an_option_that_is_left_out_is_filled_in(tmp_path):
  config = _config(tmp_path)
  synced = verify_and_sync_scan_layers(config, _UNSCANNED)
  assert type(synced.config) is pyconfig.HyperParameters
  assert synced.config.scan_layers is False
  assert config.scan_layers is True


@pytest.mark.parametrize("way", ["flag", "environment"])
def test_an_option_that_is_set_may_not_contradict(tmp_path, way, monkeypatch):
  flags = ["scan_layers=true"] if way == "flag" else []
  if way == "environment":
    monkeypatch.setenv("M_SCAN_LAYERS", "true")
  with pytest.raises(LayoutError, match="sets scan_layers=True"):
    verify_and_sync_scan_layers(_config(tmp_path, *flags), _UNSCANNED)


def test_what_a_run_records(tmp_path):
  config = _config(tmp_path, "scan_layers=false", "lora.lora_rank=4")
  assert checkpoint_custom_metadata(config) == {
    "scan_layers": False,
    "lora": {"enable_lora": True, "lora_rank": 4, "lora_module_path": ""},
  }


def test_lora(tmp_path):
  step = golden.copy_checkpoints("lora_sft_unscan", tmp_path) / "4"
  custom = {"lora": {"lora_rank": 4, "lora_alpha": 8.0}}
  metadata = json.dumps({"custom_metadata": custom})
  (step / "_CHECKPOINT_METADATA").write_text(metadata)
  synced = sync_lora_metadata(_config(tmp_path), step)
  assert synced.config.lora.lora_rank == 4
  assert synced.config.lora.lora_alpha == 8.0
  with pytest.raises(LayoutError, match=r"lora\.lora_rank=2, but it is 4"):
    sync_lora_metadata(_config(tmp_path, "lora.lora_rank=2"), step)
