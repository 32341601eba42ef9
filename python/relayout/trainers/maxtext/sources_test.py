"""Any layout becomes one that MaxText reads; what it reads is left alone."""

import shutil
import types
from pathlib import Path

import pytest

from relayout.errors import LayoutError, TargetExistsError
from relayout.layouts import detect, stacking
from relayout.layouts.registry import LAYOUTS
from relayout.metadata.item import open_item
from relayout.trainers.maxtext import sources
from relayout.trainers.maxtext.sources import FULL_STATE, PARAMETERS
from tests.support import golden


@pytest.fixture
def config(tmp_path):
  return types.SimpleNamespace(
    checkpoint_dir=f"{tmp_path}/run/checkpoints/",
    decoder_block="qwen3",
    load_full_state_path="",
    load_parameters_path="",
    model_name="qwen3-0.6b",
    param_scan_axis=1,
    scan_layers=True,
    source_checkpoint_layout="orbax",
  )


@pytest.fixture
def step(tmp_path):
  def copy(name, number):
    return golden.copy_checkpoints(name, tmp_path / name) / number

  return copy


def _weight_paths(item):
  opened = open_item(Path(item))
  layout = LAYOUTS[detect.layout_of_item(opened)]
  return layout.read({layout.items[0]: opened}).weight_paths


def test_without_a_path_nothing_happens(config, tmp_path):
  sources.make_readable(config, PARAMETERS, FULL_STATE)
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [PARAMETERS, FULL_STATE])
@pytest.mark.parametrize("below", ["", "items"])
def test_what_maxtext_reads_stays(config, step, tmp_path, name, below):
  path = step("pretrain_scan", "4")
  setattr(config, name, str(path / below))
  sources.make_readable(config, name)
  assert getattr(config, name) == str(path / "items")
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
  ("source", "scan"),
  [
    ("sft_scan", True),
    ("sft_unscan", True),
    ("pretrain_unscan", True),
    ("sft_scan", False),
    ("pretrain_scan", False),
  ],
)
@pytest.mark.parametrize("name", [PARAMETERS, FULL_STATE])
def test_what_it_does_not_read_is_converted(config, step, name, source, scan):
  config.scan_layers = scan
  path = step(source, "4")
  before = golden.tree_digest(path)
  setattr(config, name, str(path))
  sources.make_readable(config, name)
  made = getattr(config, name)
  setattr(config, name, str(path))
  sources.make_readable(config, name)  # It is there already.
  assert getattr(config, name) == made
  assert made.endswith("/items")
  assert "run/relayout_source/" in made
  mode = stacking.scan_mode(_weight_paths(made))
  assert mode == ("scanned" if scan else "unscanned")
  names = {leaf.name.partition(".")[0] for leaf in open_item(Path(made)).leaves}
  assert ("opt_state" in names) == (name == FULL_STATE)
  after = golden.tree_digest(path)
  assert {n: d[-1] for n, d in after.items()} == {
    n: d[-1] for n, d in before.items()
  }


def test_of_a_run_the_newest_step_is_taken(config, step):
  config.load_parameters_path = str(step("pretrain_scan", "4").parent)
  sources.make_readable(config, PARAMETERS)
  assert config.load_parameters_path.endswith("/4/items")


@pytest.mark.parametrize(
  "path", ["gs://bucket/run/checkpoints/4/items", "/no/such/checkpoint"]
)
def test_what_is_no_checkpoint_here_is_left_to_maxtext(config, path):
  config.load_parameters_path = path
  sources.make_readable(config, PARAMETERS)
  assert config.load_parameters_path == path


def test_two_sources_of_one_run_do_not_meet(config, step):
  made = []
  for name in ("sft_scan", "dpo_scan"):
    config.load_parameters_path = str(step(name, "4"))
    sources.make_readable(config, PARAMETERS)
    made.append(config.load_parameters_path)
  assert made[0] != made[1]


def test_a_source_that_changed_is_refused(config, step):
  path = step("sft_scan", "4")
  config.load_parameters_path = str(path)
  sources.make_readable(config, PARAMETERS)
  shutil.rmtree(path)
  shutil.copytree(step("dpo_scan", "4"), path)
  config.load_parameters_path = str(path)
  with pytest.raises(TargetExistsError, match="another source"):
    sources.make_readable(config, PARAMETERS)


def test_a_full_state_without_an_optimizer_is_refused(config, step):
  path = step("sft_scan", "4")
  shutil.rmtree(path / "optimizer_state")
  config.load_full_state_path = str(path)
  with pytest.raises(LayoutError, match="no optimizer state"):
    sources.make_readable(config, FULL_STATE)
