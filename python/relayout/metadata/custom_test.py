import json
import shutil

import pytest

from relayout.errors import CorruptCheckpointError, NotACheckpointError
from relayout.metadata.custom import load_checkpoint_metadata
from relayout.metadata.step_metadata import FILE_NAME
from tests.support import golden


def _record(directory, custom):
  path = directory / FILE_NAME
  path.write_text(json.dumps({"custom_metadata": custom}))
  return path


@pytest.fixture
def step(tmp_path):
  return golden.copy_checkpoints("pretrain_scan", tmp_path) / "4"


def test_step_and_item_say_the_same(step):
  want = {"scan_layers": True}
  assert load_checkpoint_metadata(step) == want
  assert load_checkpoint_metadata(step / "items") == want
  assert load_checkpoint_metadata(f"{step}/items/") == want


def test_a_relative_path(step, monkeypatch):
  monkeypatch.chdir(step / "items")
  assert load_checkpoint_metadata(".") == {"scan_layers": True}


def test_nothing_recorded(step):
  (step / FILE_NAME).unlink()
  assert load_checkpoint_metadata(step) == {}
  assert load_checkpoint_metadata(step / "items") == {}


def test_a_parent_of_the_step_is_not_asked(step):
  (step / FILE_NAME).unlink()
  _record(step.parent, {"scan_layers": False})
  assert load_checkpoint_metadata(step) == {}
  assert load_checkpoint_metadata(step / "items") == {}


def test_an_item_that_is_a_checkpoint_by_itself(step, tmp_path):
  alone = tmp_path / "elsewhere" / "weights"
  shutil.copytree(step / "items", alone)
  assert load_checkpoint_metadata(alone) == {}
  _record(alone, {"scan_layers": False})
  assert load_checkpoint_metadata(alone) == {"scan_layers": False}


def test_the_step_is_asked_before_the_item(step):
  _record(step / "items", {"scan_layers": False})
  assert load_checkpoint_metadata(step / "items") == {"scan_layers": True}


def test_a_run_is_no_step(step):
  with pytest.raises(NotACheckpointError, match=f"such as {step}"):
    load_checkpoint_metadata(step.parent)


def test_a_path_that_is_not_there(step):
  with pytest.raises(NotACheckpointError, match="does not exist"):
    load_checkpoint_metadata(step / "nothing")


def test_damage_is_not_taken_for_absence(step):
  (step / FILE_NAME).write_text("{")
  with pytest.raises(CorruptCheckpointError, match=FILE_NAME):
    load_checkpoint_metadata(step / "items")
