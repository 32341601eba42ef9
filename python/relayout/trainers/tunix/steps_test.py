"""Which steps are written, kept, skipped and chosen."""

import gc
import os
import shutil
import threading
import types

import jax
import orbax.checkpoint as ocp
import pytest
from absl import logging
from tunix.sft import checkpoint_manager

from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  NotACheckpointError,
)
from relayout.metadata.step_metadata import read_step_metadata
from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager
from tests.support.small_models import build, differences, train, values

SYNC = ocp.CheckpointManagerOptions(enable_async_checkpointing=False)


@pytest.fixture
def manager(tmp_path):
  manager = MaxTextLayoutCheckpointManager(str(tmp_path / "run"), SYNC)
  yield manager
  manager.close()


@pytest.fixture
def warnings(monkeypatch):
  lines = []
  monkeypatch.setattr(
    logging, "warning", lambda text, *args: lines.append(text % args)
  )
  return lines


def _truncate(step):
  """Cuts the data files of a step's items in half."""
  for file in (step / "items").rglob("*"):
    if file.parent.name == "d":
      os.truncate(file, file.stat().st_size // 2)


def test_a_step_on_disk_is_skipped(manager, tmp_path):
  model, opt = build(0)
  assert manager.save(1, model, opt)
  before = values(model)
  train(model, opt, 1)
  assert not manager.save(1, model, opt)
  other, other_opt = build(1)
  manager.maybe_restore(other, other_opt)
  assert not differences(before, values(other))


def test_a_step_on_disk_is_replaced_if_forced(manager, warnings):
  model, opt = build(0)
  manager.save(1, model, opt)
  train(model, opt, 1)
  assert manager.save(1, model, opt, force=True)
  other, other_opt = build(1)
  manager.maybe_restore(other, other_opt)
  assert not differences(values(model), values(other))
  assert "Step 1 is saved once more" in warnings[0]


def test_saves_when_the_options_say_so(tmp_path):
  options = ocp.CheckpointManagerOptions(
    save_interval_steps=2, max_to_keep=2, enable_async_checkpointing=False
  )
  manager = MaxTextLayoutCheckpointManager(str(tmp_path), options)
  model, opt = build(0)
  saved = [step for step in range(1, 8) if manager.save(step, model, opt)]
  assert saved == [1, 2, 4, 6]
  assert manager.latest_step() == 6
  manager.close()
  assert sorted(os.listdir(tmp_path)) == ["4", "6"]


def test_metadata_comes_from_config_and_the_callers_wins(tmp_path):
  config = types.SimpleNamespace(
    scan_layers=True, param_scan_axis=1, model_name="qwen3-0.6b"
  )
  manager = MaxTextLayoutCheckpointManager(str(tmp_path), SYNC, config)
  model, opt = build(0, scan=True)
  manager.save(1, model, opt, custom_metadata={"role": "actor"})
  manager.save(2, model, opt, custom_metadata={"scan_layers": "mine"})
  manager.close()
  first = read_step_metadata(tmp_path / "1").custom_metadata
  assert first["scan_layers"] is True
  assert first["param_scan_axis"] == 1
  assert first["role"] == "actor"
  second = read_step_metadata(tmp_path / "2").custom_metadata
  assert second["scan_layers"] == "mine"


def test_a_damaged_newest_step_gives_way_to_the_one_before(
  manager, tmp_path, warnings
):
  model, opt = build(0)
  manager.save(1, model, opt)
  want = values(model)
  train(model, opt, 1)
  manager.save(2, model, opt)
  _truncate(tmp_path / "run/2")
  other, other_opt = build(1)
  assert manager.maybe_restore(other, other_opt)[0] == 1 - 1
  assert not differences(want, values(other))
  assert "Step 2 is damaged" in warnings[0]


@pytest.mark.parametrize("item", ["items", "relayout"])
def test_a_step_that_lost_an_item_is_damaged(manager, tmp_path, warnings, item):
  model, opt = build(0)
  manager.save(1, model, opt)
  want = values(model)
  train(model, opt, 1)
  manager.save(2, model, opt)
  shutil.rmtree(tmp_path / "run/2" / item)
  other, other_opt = build(1)
  manager.maybe_restore(other, other_opt)
  assert not differences(want, values(other))
  assert "Step 2 is damaged" in warnings[0]


@pytest.mark.parametrize("item", ["model_params", "optimizer_state"])
def test_a_step_of_tunix_that_lost_an_item_is_damaged(
  manager, tmp_path, warnings, item
):
  stock = checkpoint_manager.CheckpointManager(str(tmp_path / "run"), SYNC)
  model, opt = build(0)
  stock.save(1, model, opt)
  stock.close()
  shutil.rmtree(tmp_path / "run/1" / item)
  other, other_opt = build(1)
  with pytest.raises(CorruptCheckpointError, match=item):
    manager.maybe_restore(other, other_opt)


def test_only_damaged_steps_are_an_error(manager, tmp_path, warnings):
  model, opt = build(0)
  for step in (1, 2):
    manager.save(step, model, opt)
    _truncate(tmp_path / f"run/{step}")
  other, other_opt = build(1)
  before = values(other) | values(other_opt)
  with pytest.raises(CorruptCheckpointError, match="none of 2 steps") as error:
    manager.maybe_restore(other, other_opt)
  assert str(tmp_path / "run/1") in str(error.value)
  assert not differences(before, values(other) | values(other_opt))


def test_an_unfinished_save_is_no_step(manager, tmp_path):
  model, opt = build(0)
  manager.save(1, model, opt)
  shutil.copytree(
    tmp_path / "run/1", tmp_path / "run/2.orbax-checkpoint-tmp-17"
  )
  other, other_opt = build(1)
  assert manager.maybe_restore(other, other_opt)[1] == {"scan_layers": False}
  assert not differences(values(model), values(other))


def test_a_step_by_its_number(manager):
  model, opt = build(0)
  manager.save(1, model, opt)
  want = values(model)
  train(model, opt, 1)
  manager.save(2, model, opt)
  other, other_opt = build(1)
  manager.maybe_restore(other, other_opt, step=1)
  assert not differences(want, values(other))
  with pytest.raises(NotACheckpointError, match=r"no step 7; it has \[1, 2\]"):
    manager.maybe_restore(other, other_opt, step=7)


def test_another_optimizer_is_refused_with_every_leaf(manager):
  model, opt = build(0)
  manager.save(1, model, opt)
  other, other_opt = build(1)
  other.decoder.layers_1.dense.kernel.set_value(
    other.decoder.layers_1.dense.kernel.get_value()[:2]
  )
  before = values(other) | values(other_opt)
  with pytest.raises(LayoutError) as error:
    manager.maybe_restore(other)
  assert (
    "model_params/decoder.layers_1.dense.kernel.value: stored with shape "
    "[4, 4], the model has [2, 4]"
  ) in str(error.value)
  assert not differences(before, values(other) | values(other_opt))


def test_saves_in_the_background(tmp_path):
  manager = MaxTextLayoutCheckpointManager(
    str(tmp_path), ocp.CheckpointManagerOptions()
  )
  model, opt = build(0)
  want = {}
  for step in range(1, 6):
    train(model, opt, 1, step)
    assert manager.save(step, model, opt)
    want[step] = values(model) | values(opt)
  manager.wait_until_finished()
  for step, state in want.items():
    other, other_opt = build(1)
    assert manager.maybe_restore(other, other_opt, step=step)[0] == step
    assert not differences(state, values(other) | values(other_opt))
  manager.close()


def _resident_bytes():
  with open("/proc/self/statm") as file:
    return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_thirty_saves_leak_nothing(tmp_path):
  model, opt = build(0)
  train(model, opt, 1)
  counts, memory = [], []
  for part in range(3):
    options = ocp.CheckpointManagerOptions(max_to_keep=1)
    manager = MaxTextLayoutCheckpointManager(str(tmp_path), options)
    for step in range(part * 10, part * 10 + 10):
      manager.save(step, model, opt)
    manager.close()
    gc.collect()
    counts.append(
      (
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
        len(jax.live_arrays()),
      )
    )
    memory.append(_resident_bytes())
  assert counts[1] == counts[2]
  assert os.listdir(tmp_path) == ["29"]
  # The state has some kilobytes; a save that kept its buffers would show.
  assert memory[2] - memory[1] < 32 << 20


def test_a_half_built_manager_closes_without_hiding_the_first_error(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(NotADirectoryError):
    MaxTextLayoutCheckpointManager(str(tmp_path / "file/run"), SYNC)
  half_built = MaxTextLayoutCheckpointManager.__new__(
    MaxTextLayoutCheckpointManager
  )
  half_built.close()
