"""Whole verifications of what was converted, and of what was not."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import (
  CorruptCheckpointError,
  NotACheckpointError,
  OptionError,
)
from relayout.verify import Declared, render_table, verify
from tests.support import golden, stores

_FLAT = Options(scan_layers="true", layer_pattern="flat")
_UNSCANNED = tuple(
  name for name in golden.TUNIX if "unscan" in name and "gemma3" not in name
)
_HELD = ("moved", "stacked", "set_aside")
_ACC_GRADS = "opt_state.acc_grads.base.decoder.decoder_norm.scale.value"


def _accounts(report):
  [step] = report.to_json()["steps"]
  return step


@pytest.mark.parametrize("name", golden.TUNIX)
@pytest.mark.parametrize("options", [Options(), Options(params_only=True)])
def test_every_golden_checkpoint_verifies(name, options, tmp_path):
  before = golden.tree_digest(golden.checkpoints(name))
  convert(golden.checkpoints(name), tmp_path, options)
  report = verify(golden.checkpoints(name), tmp_path)
  assert report.is_ok, render_table(report)
  assert golden.tree_digest(golden.checkpoints(name)) == before


@pytest.mark.parametrize("name", _UNSCANNED)
def test_stacks_verify(name, tmp_path):
  convert(golden.checkpoints(name), tmp_path, _FLAT)
  report = verify(golden.checkpoints(name), tmp_path)
  assert report.is_ok, render_table(report)
  assert report.totals()["stacked"] > 0


@pytest.mark.parametrize("name", _UNSCANNED)
def test_every_leaf_has_one_account(name, tmp_path):
  """The labels in the accounts are the arrays in the stores, each once."""
  convert(golden.checkpoints(name), tmp_path, _FLAT)
  for step in verify(golden.checkpoints(name), tmp_path).to_json()["steps"]:
    held = [a for kind in _HELD for a in step[kind]]
    named = [a["target"] for a in (*held, *step["derived"])]
    named += [a["source"] for a in step["dropped"]]
    named += [s for a in held for s in a["sources"]]
    derived = {s for a in step["derived"] for s in a["sources"]}
    aside = {s for a in step["set_aside"] for s in a["sources"]}
    assert len(named) == len(set(named))
    assert not aside & {a["source"] for a in step["dropped"]}
    stored = {
      f"{item.name}/{name}"
      for side in ("target", "source")
      for item in Path(step[side]).iterdir()
      if item.is_dir()
      for name in stores.array_names(item)
    }
    assert {*named, *derived} == stored | {"items/opt_state.1"}


def test_kinds_of_accounts(tmp_path):
  convert(golden.checkpoints("dpo_scan_ga2"), tmp_path, Options())
  step = _accounts(verify(golden.checkpoints("dpo_scan_ga2"), tmp_path))
  [derived] = [a for a in step["derived"] if a["target"] == "items/step"]
  assert derived["source_value"] == derived["target_value"] == 4
  assert "gradient_step of MultiSteps" in derived["rule"]
  assert "optimizer_state/step.value" in derived["sources"]
  aside = {s for a in step["set_aside"] for s in a["sources"]}
  assert f"optimizer_state/{_ACC_GRADS}" in aside
  assert "optimizer_state/opt_state.mini_step.value" in aside
  assert any(".rngs." in name for name in aside)


def test_reasons_where_nothing_is_set_aside(tmp_path):
  source = golden.checkpoints("dpo_scan_ga2")
  convert(source, tmp_path, Options())
  _remove_aside(tmp_path)
  report = verify(source, tmp_path)
  assert report.is_ok, render_table(report)
  step = _accounts(report)
  reasons = {a["source"]: a["reason"] for a in step["dropped"]}
  assert "all are zero" in reasons[f"optimizer_state/{_ACC_GRADS}"]
  assert "micro-steps" in reasons["optimizer_state/opt_state.mini_step.value"]
  rng = [reason for name, reason in reasons.items() if ".rngs." in name]
  assert rng
  assert all("unsafe_rbg only" in reason for reason in rng)


def _remove_aside(checkpoints: Path) -> None:
  """Removes from every step what was set aside."""
  for step in checkpoints.iterdir():
    shutil.rmtree(step / "relayout")
    file = step / "_CHECKPOINT_METADATA"
    value = json.loads(file.read_text())
    del value["item_handlers"]["relayout"]
    file.write_text(json.dumps(value))


def test_steps_are_paired_and_limited(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path, Options())
  report = verify(source, tmp_path)
  assert [Path(step.source).name for step in report.steps] == ["2", "4"]
  assert [step.updates for step in report.steps] == [2, 4]
  one = verify(source, tmp_path, step=4)
  assert one.is_ok
  assert [Path(step.target).name for step in one.steps] == ["3"]
  with pytest.raises(
    OptionError, match=r"--step=3: .* has no such step; it has 2, 4"
  ):
    verify(source, tmp_path, step=3)


@pytest.mark.parametrize("numbering", ["maxtext", "keep"])
@pytest.mark.parametrize("params_only", [False, True])
def test_any_numbering(numbering, params_only, tmp_path):
  source = golden.checkpoints("rl_scan")
  options = Options(step_numbering=numbering, params_only=params_only)
  convert(source, tmp_path, options)
  report = verify(source, tmp_path)
  assert report.is_ok, render_table(report)
  assert [Path(step.source).name for step in report.steps] == ["2", "4"]


def test_a_step_that_was_not_converted_is_a_difference(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path, Options(step=4))
  [found] = verify(source, tmp_path).differences()
  assert found.kind == "step"
  assert found.leaf.endswith("checkpoints/2")
  assert verify(source, tmp_path, step=4).is_ok
  assert verify(source / "4", tmp_path).is_ok


def test_a_step_from_nowhere_is_a_difference(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path, Options())
  [found] = verify(source / "4", tmp_path).differences()
  assert found.leaf == str(tmp_path / "1")
  assert "made from no step of the source" in found.detail
  assert verify(source / "4", tmp_path / "3").is_ok
  assert verify(source / "4", tmp_path / "3" / "items").is_ok


def test_a_wrong_step_of_the_right_run_differs(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path, Options())
  report = verify(source / "2", tmp_path / "3")
  kinds = {difference.kind for difference in report.differences()}
  assert kinds == {"value"}
  leaves = {difference.leaf for difference in report.differences()}
  assert {"items/step", "items/opt_state.0.count"} <= leaves


def test_a_single_item(tmp_path):
  source = golden.checkpoints("sft_scan") / "4" / "model_params"
  convert(source, tmp_path, Options())
  report = verify(source, tmp_path)
  assert report.is_ok, render_table(report)


def test_an_item_does_not_explain_an_optimizer(tmp_path):
  source = golden.checkpoints("sft_scan") / "4"
  convert(source, tmp_path, Options())
  report = verify(source / "model_params", tmp_path)
  assert {d.kind for d in report.differences()} == {"extra", "layout"}


@pytest.mark.parametrize(
  ("source", "target"),
  [("sft_scan", "pretrain_scan"), ("sft_unscan", "pretrain_scan_gemma3")],
)
def test_what_maxtext_wrote_is_no_conversion(source, target):
  report = verify(
    golden.checkpoints(source),
    golden.checkpoints(target),
    declared=Declared(layer_pattern="gemma3"),
  )
  assert not report.is_ok


def test_a_grouping_that_nothing_tells():
  with pytest.raises(OptionError, match="--layer_pattern, such as flat"):
    verify(
      golden.checkpoints("sft_unscan"), golden.checkpoints("pretrain_scan")
    )


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("limit", [1, 1 << 28])
def test_a_target_written_in_another_way(zarr_format, limit, tmp_path):
  """Chunks and versions of zarr are free: values count, and the names."""
  source = golden.checkpoints("sft_unscan") / "4"
  convert(source, tmp_path / "first", _FLAT)
  item = tmp_path / "second" / "3" / "items"
  shutil.copytree(tmp_path / "first" / "3", item.parent)
  shutil.rmtree(item / "d")
  (item / "manifest.ocdbt").unlink()
  arrays = stores.read_item(tmp_path / "first" / "3" / "items")
  stores.write_item(item, arrays, zarr_format=zarr_format)
  tree = json.loads((item / "_METADATA").read_text())
  tree["use_zarr3"] = zarr_format == 3
  (item / "_METADATA").write_text(json.dumps(tree))
  report = verify(source, tmp_path / "second", memory_limit=limit)
  assert report.is_ok, render_table(report)


def _set(item: Path, name: str, value) -> None:
  spec = {"driver": "zarr", "kvstore": stores.kvstore(item, f"{name}/")}
  array = ts.open(spec).result()
  array.write(np.full(array.shape, value, array.dtype.numpy_dtype)).result()


def test_lost_gradients_are_told(tmp_path):
  source = golden.copy_checkpoints("dpo_scan_ga2", tmp_path)
  optimizer = source / "4" / "optimizer_state"
  _set(optimizer, "opt_state.mini_step.value", 1)
  _set(optimizer, _ACC_GRADS, 0.5)
  convert(source, tmp_path / "out", Options(force=True))
  report = verify(source, tmp_path / "out")
  assert report.is_ok
  assert "the gradients of 1 micro-steps may be LOST" in render_table(report)
  _remove_aside(tmp_path / "out")
  report = verify(source, tmp_path / "out")
  assert "the gradients of 1 are LOST" in render_table(report)


def test_gradients_that_should_be_zero_are_a_difference(tmp_path):
  source = golden.copy_checkpoints("dpo_scan_ga2", tmp_path)
  _set(source / "4" / "optimizer_state", _ACC_GRADS, 0.5)
  convert(source, tmp_path / "out", Options())
  assert verify(source, tmp_path / "out").is_ok
  _remove_aside(tmp_path / "out")
  [found] = verify(source, tmp_path / "out").differences()
  assert found.leaf == f"optimizer_state/{_ACC_GRADS}"
  assert "64 accumulated gradients are not zero" in found.detail


def test_a_schedule_that_ran_apart_from_the_optimizer(tmp_path):
  source = golden.copy_checkpoints("rl_scan", tmp_path)
  for step in source.rglob("optimizer_state"):
    _set(step, "opt_state.hyperparams_states.learning_rate.count.value", 9)
  convert(source, tmp_path / "out", Options())
  report = verify(source, tmp_path / "out")
  assert report.is_ok, render_table(report)
  derived = [a for s in report.to_json()["steps"] for a in s["derived"]]
  assert 9 in [a["target_value"] for a in derived]


def test_an_array_that_the_source_does_not_name(tmp_path):
  source = golden.copy_checkpoints("sft_scan_stock0", tmp_path)
  extra = {"left.over.value": np.ones(3, np.float32)}
  stores.write_item(source / "0" / "model_params", extra)
  convert(source, tmp_path / "out", Options())
  report = verify(source, tmp_path / "out")
  assert report.is_ok, render_table(report)
  assert "model_params/left.over.value: the source's _METADATA" in render_table(
    report
  )


def test_sides_that_seem_to_be_swapped(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path, Options())
  assert "are they swapped" in render_table(verify(tmp_path, source))
  assert "swapped" not in render_table(verify(source, tmp_path))


def test_a_checkpoint_equals_itself():
  for name in ("sft_scan", "pretrain_scan"):
    report = verify(golden.checkpoints(name), golden.checkpoints(name))
    assert report.is_ok, render_table(report)


def test_an_absent_target():
  with pytest.raises(NotACheckpointError):
    verify(golden.checkpoints("sft_scan"), Path("/absent"))


def test_a_damaged_source_is_an_error(tmp_path):
  source = golden.copy_checkpoints("sft_scan", tmp_path) / "4"
  convert(source, tmp_path / "out", Options())
  manifest = source / "optimizer_state" / "manifest.ocdbt"
  manifest.write_bytes(manifest.read_bytes()[:-9])
  with pytest.raises(CorruptCheckpointError):
    verify(source, tmp_path / "out")


def test_progress_is_told(tmp_path):
  convert(golden.checkpoints("sft_scan_stock0"), tmp_path, Options())
  told: list[str] = []
  verify(golden.checkpoints("sft_scan_stock0"), tmp_path, progress=told.append)
  assert told[-1].startswith("step 0: compared 100 %")


def test_importing_is_cheap():
  """Neither NumPy, TensorStore nor JAX is imported before anything is read."""
  heavy = {"jax", "numpy", "orbax", "tensorstore"}
  code = f"import relayout.verify, sys; assert not {heavy} & set(sys.modules)"
  subprocess.run(
    [sys.executable, "-c", code],
    check=True,
    env={"PYTHONPATH": ":".join(sys.path)},
  )
