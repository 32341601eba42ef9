"""What a checkpoint records against what a run sets."""

import json
import types

import pytest
from absl import logging

from relayout.errors import LayoutError
from relayout.layouts.run_config import (
  infer_scan_mode,
  sync_lora_metadata,
  verify_and_sync_scan_layers,
)
from tests.support import golden

_FILE = "_CHECKPOINT_METADATA"


class _Pydantic:
  """Has of a pydantic model what MaxText's configuration is used for."""

  def __init__(self, fields, fields_set):
    self.fields = fields
    self.model_fields_set = fields_set

  def __getattr__(self, name):
    try:
      return self.__dict__["fields"][name]
    except KeyError:
      raise AttributeError(name) from None

  def model_copy(self, update):
    return _Pydantic({**self.fields, **update}, self.model_fields_set)


class _HyperParameters:
  """As MaxText's: read-only, around a pydantic model."""

  def __init__(self, pydantic_config):
    object.__setattr__(self, "_pydantic_config", pydantic_config)

  def __getattr__(self, name):
    return getattr(object.__getattribute__(self, "_pydantic_config"), name)

  def __setattr__(self, name, value):
    raise ValueError("read-only")


def _config(scan_layers=True, explicit=(), **more):
  fields = {"scan_layers": scan_layers, "param_scan_axis": 1, **more}
  return _HyperParameters(_Pydantic(fields, set(explicit)))


def _step(tmp_path, name, custom):
  """Returns a golden step that records `custom`."""
  step = golden.copy_checkpoints(name, tmp_path) / "4"
  path = step / _FILE
  metadata = json.loads(path.read_text()) | {"custom_metadata": custom}
  path.write_text(json.dumps(metadata))
  return step


def _weights_of(tmp_path, recorded):
  name = "sft_unscan" if recorded is False else "sft_scan"
  custom = {} if recorded is None else {"scan_layers": recorded}
  return _step(tmp_path, name, custom)


@pytest.mark.parametrize("set_to", [True, False, None])
@pytest.mark.parametrize("recorded", [True, False, None])
def test_nine_cells(tmp_path, recorded, set_to):
  step = _weights_of(tmp_path, recorded)
  stored = recorded is not False  # the names tell where nothing is recorded
  if set_to is None:
    config = _config(scan_layers=not stored)
  else:
    config = _config(set_to, {"scan_layers"})
  if set_to not in (None, stored):
    with pytest.raises(LayoutError, match="scan_layers") as caught:
      verify_and_sync_scan_layers(config, step)
    message = str(caught.value)
    assert f"sets scan_layers={set_to}, but it is {stored}" in message
    assert f"Pass scan_layers={stored} or leave it out" in message
    assert ("names of the leaves" in message) == (recorded is None)
    return
  synced = verify_and_sync_scan_layers(config, step)
  assert synced.config.scan_layers is stored
  assert synced.origin == ("names" if recorded is None else "recorded")
  assert synced.changed == ({} if set_to == stored else {"scan_layers": stored})
  assert type(synced.config) is _HyperParameters


def test_the_configuration_that_was_given_stays_as_it_was(tmp_path):
  config = _config(scan_layers=True)
  step = _step(tmp_path, "sft_unscan", {})
  synced = verify_and_sync_scan_layers(config, step / "model_params")
  assert (config.scan_layers, synced.config.scan_layers) == (True, False)


def test_an_axis_is_compared_where_layers_are_stacked(tmp_path):
  scanned = {"scan_layers": True, "param_scan_axis": 0}
  step = _step(tmp_path, "sft_scan", scanned)
  synced = verify_and_sync_scan_layers(_config(), step)
  assert synced.changed == {"param_scan_axis": 0}
  with pytest.raises(LayoutError, match="param_scan_axis=1, but it is 0"):
    verify_and_sync_scan_layers(_config(explicit={"param_scan_axis"}), step)


def test_an_axis_does_not_matter_where_they_are_not(tmp_path):
  unscanned = {"scan_layers": False, "param_scan_axis": 0}
  step = _step(tmp_path, "sft_unscan", unscanned)
  config = _config(False, {"param_scan_axis"})
  assert verify_and_sync_scan_layers(config, step).changed == {}


def test_what_is_filled_in_is_logged(tmp_path, caplog):
  logger = logging.get_absl_logger()
  logger.addHandler(caplog.handler)
  caplog.set_level("INFO", logger=logger.name)
  try:
    step = _step(tmp_path, "sft_unscan", {})
    verify_and_sync_scan_layers(_config(), step)
  finally:
    logger.removeHandler(caplog.handler)
  assert f"scan_layers=False, as the names of the leaves in {step}" in (
    caplog.text
  )


class TestWhatIsSet:
  def test_names_given(self, tmp_path):
    step = _step(tmp_path, "sft_unscan", {"scan_layers": False})
    config = types.SimpleNamespace(scan_layers=True)
    with pytest.raises(LayoutError, match="scan_layers=True"):
      verify_and_sync_scan_layers(config, step, explicit=["scan_layers"])
    synced = verify_and_sync_scan_layers(config, step, explicit=[])
    assert synced.config.scan_layers is False

  def test_a_plain_object_sets_what_is_no_default(self, tmp_path):
    config = types.SimpleNamespace(scan_layers=True)
    step = _step(tmp_path / "1", "sft_unscan", {"scan_layers": False})
    synced = verify_and_sync_scan_layers(config, step)
    assert synced.config.scan_layers is False
    assert config.scan_layers is True
    config.scan_layers = False
    step = _step(tmp_path / "2", "sft_scan", {"scan_layers": True})
    with pytest.raises(LayoutError, match="scan_layers=False"):
      verify_and_sync_scan_layers(config, step)

  def test_a_missing_attribute_is_not_set(self, tmp_path):
    step = _step(tmp_path, "sft_unscan", {"scan_layers": False})
    synced = verify_and_sync_scan_layers(types.SimpleNamespace(), step)
    assert synced.config.scan_layers is False


@pytest.mark.parametrize("damaged", ["yes", 1, None, [True]])
def test_what_is_no_flag_is_not_recorded(tmp_path, damaged):
  step = _step(tmp_path, "sft_unscan", {"scan_layers": damaged})
  assert verify_and_sync_scan_layers(_config(False), step).origin == "names"


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_names_tell_for_every_golden(name):
  want = "unscanned" if "unscan" in name else "scanned"
  for path in golden.checkpoints(name).rglob("_METADATA"):
    assert infer_scan_mode(path.parent) == want
    assert infer_scan_mode(path.parent.parent) == want


_RECORDED = {
  "enable_lora": True,
  "lora_rank": 4,
  "lora_alpha": 8.0,
  "lora_module_path": ".*wo",
  "lora_weight_qtype": None,
  "lora_tile_size": None,
}


def _lora(**changed):
  section = {
    "enable_lora": False,
    "lora_rank": 0,
    "lora_alpha": 0.0,
    "lora_module_path": "",
    "lora_weight_qtype": None,
    "lora_tile_size": None,
  }
  return _config(lora=_Pydantic(section | changed, set()))


class TestLora:
  @pytest.fixture
  def step(self, tmp_path):
    return _step(tmp_path, "lora_sft_unscan", {"lora": _RECORDED})

  def test_defaults_are_filled_in(self, step):
    config = _lora()
    synced = sync_lora_metadata(config, step / "model_params")
    assert synced.config.lora.lora_rank == 4
    assert synced.config.lora.lora_alpha == 8.0
    assert synced.config.lora.lora_module_path == ".*wo"
    assert synced.config.lora.enable_lora is False
    assert synced.changed == {
      "lora.lora_rank": 4,
      "lora.lora_alpha": 8.0,
      "lora.lora_module_path": ".*wo",
    }
    assert config.lora.lora_rank == 0

  def test_what_agrees_stays(self, step):
    config = _lora(lora_rank=4, lora_alpha=8.0, lora_module_path=".*wo")
    synced = sync_lora_metadata(config, step)
    assert synced.config is config
    assert (synced.origin, synced.changed) == ("recorded", {})

  @pytest.mark.parametrize(
    ("name", "own"),
    [("lora_rank", 8), ("lora_alpha", 16.0), ("lora_module_path", ".*wi")],
  )
  def test_contradictions(self, step, name, own):
    with pytest.raises(LayoutError) as caught:
      sync_lora_metadata(_lora(**{name: own}), step)
    message = str(caught.value)
    assert f"lora.{name}={own}, but it is {_RECORDED[name]}" in message
    assert "or leave it out" in message

  def test_an_explicit_default(self, step):
    with pytest.raises(LayoutError, match=r"lora_alpha=0\.0, but it is 8\.0"):
      sync_lora_metadata(_lora(), step, explicit=["lora_alpha"])

  def test_what_is_not_recorded_is_the_runs(self, step, tmp_path):
    """As of a converted checkpoint, whose alpha nothing tells."""
    other = _step(tmp_path / "2", "lora_sft_unscan", {"lora": {"lora_rank": 4}})
    synced = sync_lora_metadata(_lora(lora_alpha=2.0), other)
    assert synced.changed == {"lora.lora_rank": 4}
    assert synced.config.lora.lora_alpha == 2.0

  @pytest.mark.parametrize("custom", [{}, {"lora": None}, {"lora": {}}])
  def test_nothing_recorded(self, tmp_path, custom):
    step = _step(tmp_path / "2", "lora_sft_unscan", custom)
    config = _lora(lora_rank=2)
    synced = sync_lora_metadata(config, step)
    assert synced.config is config
    assert synced.changed == {}

  def test_sections_that_are_dicts_and_objects(self, step):
    config = types.SimpleNamespace(lora={"lora_rank": 0})
    synced = sync_lora_metadata(config, step)
    assert synced.config.lora["lora_rank"] == 4
    config = types.SimpleNamespace(lora=types.SimpleNamespace(lora_rank=0))
    synced = sync_lora_metadata(config, step)
    assert synced.config.lora.lora_rank == 4

  def test_a_configuration_without_the_section(self, step):
    config = types.SimpleNamespace()
    assert sync_lora_metadata(config, step).config is config
