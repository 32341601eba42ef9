"""What a conversion refuses, writing nothing, and what it just takes."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  NotACheckpointError,
  OptionError,
  TargetExistsError,
  UnsupportedError,
)
from tests.support import golden, stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")


@pytest.mark.parametrize("there", ["foreign", "other options", "other source"])
def test_any_other_target_is_refused_and_left_alone(tmp_path, there):
  out = tmp_path / "out"
  if there == "foreign":
    (out / "3").mkdir(parents=True)
  elif there == "other options":
    convert(golden.checkpoints("sft_scan"), out, Options(params_only=True))
  else:
    convert(golden.checkpoints("dpo_scan"), out, Options())
  before = golden.tree_digest(out)
  with pytest.raises(TargetExistsError, match=r"out/\d.*left as it is"):
    convert(golden.checkpoints("sft_scan"), out, Options())
  assert golden.tree_digest(out) == before


@pytest.mark.parametrize("inner", ["target in source", "same"])
def test_a_target_within_the_source_is_refused(tmp_path, inner):
  source = golden.copy_checkpoints("sft_scan", tmp_path)
  target = source / "out" if inner == "target in source" else source
  before = golden.tree_digest(source)
  with pytest.raises(OptionError, match="never touched"):
    convert(source, target, Options())
  assert golden.tree_digest(source) == before


@pytest.mark.parametrize(
  ("name", "options", "error", "message"),
  [
    ("sft_unscan", Options(scan_layers="true"), OptionError, "--model_name"),
    (
      "sft_unscan",
      Options(scan_layers="true", model_name="gemma3-4b", layer_pattern="flat"),
      OptionError,
      "--model_name=gemma3-4b groups layers as gemma3, against",
    ),
    (
      "sft_scan",
      Options(scan_layers="false", layer_pattern="gemma3"),
      LayoutError,
      "gemma3",
    ),
    ("sft_scan", Options(scan_layers="false"), OptionError, "--model_name"),
    ("sft_scan", Options(adapter="base"), OptionError, "--to=tunix"),
    ("sft_scan", Options(compression="gzip"), OptionError, "zstd:N"),
    ("sft_scan", Options(drop=("decoder.typo*",)), OptionError, "no leaf"),
    ("sft_scan", Options(drop=("*.mu.*",)), OptionError, "incomplete"),
    ("sft_scan", Options(drop=("*/opt_state*.count*",)), OptionError, "incom"),
    ("sft_scan", Options(memory_limit=1), OptionError, "at least 16MiB"),
    ("sft_unscan", Options(chunk_like="layer"), OptionError, "not scanned"),
    (
      "sft_unscan",
      Options(scan_layers="true", model_name="qwen3-06b"),
      OptionError,
      r"qwen3-0\.6b",
    ),
    (
      "sft_unscan",
      Options(scan_layers="true", model_name="qwen3-vl-4b"),
      UnsupportedError,
      "scan_layers=False only",
    ),
    ("sft_scan", Options(step=3), OptionError, "it has 2, 4"),
  ],
)
def test_what_cannot_be_done_is_said(name, options, error, message, tmp_path):
  source = golden.checkpoints(name)
  with pytest.raises(error, match=message):
    convert(source, tmp_path / "out", options)
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
  ("target", "error"),
  [("gs://bucket/out", NotACheckpointError), ("file", OptionError)],
)
def test_a_target_that_is_no_directory_is_refused(
  tmp_path, monkeypatch, target, error
):
  monkeypatch.chdir(tmp_path)
  Path("file").touch()
  with pytest.raises(error):
    convert(golden.checkpoints("sft_scan"), Path(target), Options())
  assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("hidden", ["4", "4/optimizer_state"])
def test_what_cannot_be_listed_is_not_left_out(tmp_path, monkeypatch, hidden):
  source = golden.copy_checkpoints("sft_scan", tmp_path)
  scandir = os.scandir

  def refuse(path):
    if Path(path) == source / hidden:
      raise PermissionError(13, "Permission denied", str(path))
    return scandir(path)

  monkeypatch.setattr(os, "scandir", refuse)
  with pytest.raises(NotACheckpointError, match=f"{hidden}: can't be listed"):
    convert(source, tmp_path / "out", Options())


def test_another_option_is_named(tmp_path):
  source = golden.checkpoints("sft_unscan")
  convert(source, tmp_path / "out", Options())
  with pytest.raises(TargetExistsError, match="scan_layers: keep -> true"):
    convert(source, tmp_path / "out", _FLAT)


def _write_tunix(root: Path, mini_step: int, step: int = 7) -> Path:
  """Writes a step whose optimizer sits in MultiSteps."""
  weight = np.arange(6, dtype=np.float32).reshape(2, 3)
  stores.write_item(root / "8/model_params", {"decoder.w.value": weight})
  stores.write_item(
    root / "8/optimizer_state",
    {
      "step.value": np.uint32(2 * step + mini_step),
      "opt_state.mini_step.value": np.int32(mini_step),
      "opt_state.gradient_step.value": np.int32(step),
      "opt_state.acc_grads.decoder.w.value": weight * mini_step,
      "opt_state.inner_opt_state.0.count.value": np.int32(step),
      "opt_state.inner_opt_state.0.mu.decoder.w.value": weight + 1,
      "opt_state.inner_opt_state.0.nu.decoder.w.value": weight + 2,
      "opt_state.inner_opt_state.2.count.value": np.int32(step),
    },
  )
  return root


def test_unfinished_accumulation_needs_force(tmp_path):
  source = _write_tunix(tmp_path / "source", mini_step=1)
  with pytest.raises(LayoutError, match=r"mini_step is 1.*--force"):
    convert(source, tmp_path / "out", Options())
  report = convert(source, tmp_path / "out", Options(force=True))
  dropped = report.to_json()["steps"][0]["set_aside"]
  assert any(
    "1 micro-steps" in reason and "lost" in reason for reason in dropped
  )


def test_two_steps_for_one_directory_are_refused(tmp_path):
  source = tmp_path / "source"
  for step in (0, 1):
    stores.write_item(source / f"{step}/model_params", {"w.value": np.ones(2)})
    stores.write_item(
      source / f"{step}/optimizer_state", {"step.value": np.uint32(step)}
    )
  weights = Options(params_only=True)
  with pytest.raises(OptionError, match="--step_numbering=keep"):
    convert(source, tmp_path / "out", weights)
  kept = dataclasses.replace(weights, step_numbering="keep")
  convert(source, tmp_path / "out", kept)
  assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
    "0",
    "1",
  ]


def _write_steps(root: Path, steps=(2, 4)) -> Path:
  for step in steps:
    stores.write_item(
      root / f"{step}/model_params",
      {"decoder.w.value": np.ones((2, 3), np.float32)},
    )
  return root


def _add_stray_chunk(item: Path) -> None:
  """Adds a chunk outside of its array's grid."""
  database = ts.KvStore.open(stores.kvstore(item)).result()
  database.write("decoder.w.value/7.7", b"x" * 200).result()


def test_damage_in_the_last_step_is_found_before_anything_is_written(tmp_path):
  source = _write_steps(tmp_path / "source")
  _add_stray_chunk(source / "4/model_params")
  with pytest.raises(CorruptCheckpointError, match=r"step 4.*7\.7"):
    convert(source, tmp_path / "out", Options())
  assert not (tmp_path / "out").exists()


def test_an_error_of_a_plan_names_the_step(tmp_path):
  source = _write_tunix(tmp_path / "source", mini_step=1)
  _write_steps(source, (2,))
  with pytest.raises(LayoutError, match=r"step 8: .*mini_step is 1"):
    convert(source, tmp_path / "out", Options())


def test_a_save_that_was_cut_short_is_refused(tmp_path):
  source = _write_steps(tmp_path / "source", (4,))
  (source / "4/optimizer_state.orbax-checkpoint-tmp-7").mkdir()
  with pytest.raises(
    CorruptCheckpointError, match=r"optimizer_state.*cut short"
  ):
    convert(source, tmp_path / "out", Options())
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("level", ["", "/out"])
def test_a_target_beside_the_steps_of_the_source_is_refused(tmp_path, level):
  source = golden.copy_checkpoints("sft_scan", tmp_path)
  before = golden.tree_digest(source)
  with pytest.raises(OptionError, match="never touched"):
    convert(source / "4", Path(f"{source}{level}"), Options())
  assert golden.tree_digest(source) == before


def test_a_step_of_an_item_is_no_option(tmp_path):
  item = golden.checkpoints("sft_scan") / "4" / "model_params"
  with pytest.raises(OptionError, match="single item"):
    convert(item, tmp_path / "out", Options(step=4))


def test_a_wrong_model_name_is_refused_even_where_it_is_not_needed(tmp_path):
  with pytest.raises(OptionError, match="qwen3-06b"):
    convert(
      golden.checkpoints("sft_scan"),
      tmp_path / "out",
      Options(model_name="qwen3-06b"),
    )


def test_a_finished_accumulation_counts_updates(tmp_path):
  source = _write_tunix(tmp_path / "source", mini_step=0)
  convert(source, tmp_path / "out", Options())
  target = stores.read_item(tmp_path / "out" / "6" / "items")
  assert target["step"] == np.int32(7)
  assert target["step"].dtype == np.int32
