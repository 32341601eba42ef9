"""Whole conversions of what Tunix wrote, read back with TensorStore."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from relayout.convert import provenance
from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import golden, stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")


def _converted(source: Path, target: Path, options: Options = _KEEP):
  """Converts; yields each step as JSON, with its source and target arrays."""
  report = convert(source, target, options)
  for step in report.to_json()["steps"]:
    step["set aside"] = [
      label
      for leaf in step["leaves"]
      if leaf["item"] == "relayout"
      for label in leaf["from"]
    ]
    step["leaves"] = [
      leaf for leaf in step["leaves"] if leaf["item"] == "items"
    ]
    arrays = stores.read_item(Path(step["target"], "items"))
    yield step, _source_arrays(Path(step["source"])), arrays


def _source_arrays(step: Path) -> dict[str, np.ndarray]:
  return {
    f"{item.name}/{name}": values
    for item in step.iterdir()
    if item.is_dir()
    for name, values in stores.read_item(item).items()
  }


def _same(left: np.ndarray, right: np.ndarray) -> bool:
  same_kind = left.dtype == right.dtype and left.shape == right.shape
  return same_kind and left.tobytes() == right.tobytes()


def _check_leaf(leaf, source, target) -> None:
  """Checks one leaf of a report against both sides."""
  if leaf["origin"] == "renamed":
    [label] = leaf["from"]
    assert _same(source[label], target[leaf["name"]]), leaf
  elif leaf["origin"] == "stacked":
    [axis] = leaf["layer_axes"]
    stack = np.stack([source[label] for label in leaf["from"]], axis)
    assert _same(stack, target[leaf["name"]]), leaf
  elif leaf["value"] is not None:
    assert _same(np.asarray(leaf["value"], np.int32), target[leaf["name"]]), (
      leaf
    )


@pytest.mark.parametrize("name", golden.TUNIX)
def test_every_golden_checkpoint_converts(name, tmp_path):
  before = golden.tree_digest(golden.checkpoints(name))
  steps = 0
  for step, source, target in _converted(
    golden.checkpoints(name), tmp_path / "out"
  ):
    steps += 1
    for leaf in step["leaves"]:
      _check_leaf(leaf, source, target)
    named = {leaf["name"] for leaf in step["leaves"] if "shape" in leaf}
    assert named == set(target)
    used = {label for leaf in step["leaves"] for label in leaf["from"]}
    dropped = {label for labels in step["dropped"].values() for label in labels}
    assert used | {*step["set aside"]} == set(source)
    assert dropped <= {*step["set aside"]}
  assert steps == len(
    list(golden.checkpoints(name).rglob("_CHECKPOINT_METADATA"))
  )
  assert golden.tree_digest(golden.checkpoints(name)) == before


@pytest.mark.parametrize(
  "name",
  [
    "sft_unscan",
    "sft_unscan_sharded",
    "sft_unscan_qwen3moe",
    "rl_unscan",
    "lora_sft_unscan",
    "qlora_int8_sft_unscan",
  ],
)
def test_unscanned_becomes_scanned(name, tmp_path):
  for step, source, target in _converted(
    golden.checkpoints(name), tmp_path / "out", _FLAT
  ):
    for leaf in step["leaves"]:
      _check_leaf(leaf, source, target)
    assert any(leaf["origin"] == "stacked" for leaf in step["leaves"])
    assert not any("layers_" in name for name in target)
    assert step["custom_metadata"]["scan_layers"] is True


def test_digests_of_the_fixture(tmp_path):
  """The readers agree with the digests that came with the files."""
  expected = golden.digests("sft_scan")
  for step, _, target in _converted(
    golden.checkpoints("sft_scan"), tmp_path / "out"
  ):
    number = Path(step["source"]).name
    for leaf in step["leaves"]:
      if leaf["origin"] == "renamed":
        digest = stores.digest(target[leaf["name"]])
        assert digest == expected[f"{number}/{leaf['from'][0]}"]


@pytest.mark.parametrize(
  ("name", "numbering", "numbers"),
  [
    ("sft_scan", "target", ["1", "3"]),
    ("sft_scan", "keep", ["2", "4"]),
    ("sft_scan_stock0", "target", ["0"]),
    ("dpo_scan_ga2", "target", ["3"]),
    ("rl_scan", "target", ["1", "3"]),
  ],
)
def test_step_numbers(name, numbering, numbers, tmp_path):
  convert(
    golden.checkpoints(name),
    tmp_path / "out",
    Options(step_numbering=numbering),
  )
  assert sorted(path.name for path in (tmp_path / "out").iterdir()) == numbers


def test_a_second_run_skips_what_is_done(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path / "out", Options())
  before = golden.tree_digest(tmp_path / "out")
  again = convert(source, tmp_path / "out", Options())
  assert [step.status for step in again.steps] == ["skipped", "skipped"]
  assert golden.tree_digest(tmp_path / "out") == before


def test_a_run_that_was_cut_short_goes_on(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path / "out", Options())
  shutil.rmtree(tmp_path / "out" / "3")
  again = convert(source, tmp_path / "out", Options())
  assert [step.status for step in again.steps] == ["skipped", "converted"]


def test_a_dry_run_writes_nothing(tmp_path):
  report = convert(
    golden.checkpoints("sft_scan"), tmp_path / "out", Options(), dry_run=True
  )
  assert [step.status for step in report.steps] == ["planned", "planned"]
  assert list(tmp_path.iterdir()) == []


def test_one_item_gives_weights_only(tmp_path):
  source = golden.checkpoints("dpo_scan") / "4" / "model_params"
  report = convert(source, tmp_path / "out", Options())
  assert [Path(step.target).name for step in report.steps] == ["3"]
  names = stores.array_names(tmp_path / "out" / "3" / "items")
  assert {name.split(".")[0] for name in names} == {"params"}


def test_params_only_reads_no_optimizer(tmp_path):
  source = golden.copy_checkpoints("sft_scan", tmp_path)
  for step in source.iterdir():
    manifest = step / "optimizer_state" / "manifest.ocdbt"
    manifest.write_bytes(b"damaged")
  convert(source, tmp_path / "out", Options(params_only=True))
  names = stores.array_names(tmp_path / "out" / "3" / "items")
  assert {name.split(".")[0] for name in names} == {"params"}


def test_the_source_may_go_away(tmp_path):
  source = golden.copy_checkpoints("sft_unscan", tmp_path / "source")
  convert(source, tmp_path / "out", _FLAT)
  before = stores.read_item(tmp_path / "out" / "3" / "items")
  shutil.rmtree(tmp_path / "source")
  after = stores.read_item(tmp_path / "out" / "3" / "items")
  assert all(_same(before[name], after[name]) for name in before)


def test_a_run_of_steps_in_both_layouts_converts(tmp_path):
  source = golden.copy_checkpoints("sft_scan", tmp_path / "in")
  there = golden.checkpoints("pretrain_scan") / "4"
  shutil.copytree(there, source / "5")
  report = convert(source, tmp_path / "out", Options())
  numbers = [Path(step.target).name for step in report.steps]
  assert numbers == ["1", "3", "4"]
  before, after = there / "items", tmp_path / "out/4/items"
  assert stores.digests(before) == stores.digests(after)
  assert len(convert(source, tmp_path / "one", Options(step=4)).steps) == 1


def test_other_steps_of_the_target_are_noted(tmp_path):
  (tmp_path / "out" / "9").mkdir(parents=True)
  report = convert(golden.checkpoints("sft_scan"), tmp_path / "out", Options())
  [note] = [note for note in report.notes if "also holds" in note]
  assert "resumes from the highest, 9" in note


def test_side_files_say_what_is_stored(tmp_path):
  convert(golden.checkpoints("sft_unscan"), tmp_path / "out", _FLAT)
  step = tmp_path / "out" / "3"
  arrays = stores.array_names(step / "items")
  tree = json.loads((step / "items/_METADATA").read_text())
  assert tree["use_ocdbt"] is True
  assert tree["use_zarr3"] is ("zarr3" in arrays.values())
  kinds = {
    ".".join(key["key"] for key in leaf["key_metadata"]): [
      key["key_type"] for key in leaf["key_metadata"]
    ]
    for leaf in tree["tree_metadata"].values()
  }
  assert kinds.keys() - arrays.keys() == {"opt_state.1"}
  assert kinds["opt_state.0.count"] == [2, 1, 2]
  assert kinds["opt_state.1"] == [2, 1]
  metadata = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  assert metadata["custom_metadata"] == {
    "scan_layers": True,
    "param_scan_axis": 1,
    "layer_pattern": "flat",
  }
  assert list(metadata["item_handlers"]) == ["items", "relayout"]
  for marker in (step, step / "items"):
    assert (marker / "commit_success.txt").is_file()
  assert not (step / "items" / "_CHECKPOINT_METADATA").exists()


def test_missing_side_files_do_not_matter(tmp_path):
  source = golden.copy_checkpoints("sft_unscan", tmp_path / "source")
  for name in ("_METADATA", "_sharding", "commit_success.txt"):
    for path in source.rglob(name):
      path.unlink()
  for path in source.rglob("array_metadatas"):
    shutil.rmtree(path)
  for step, arrays, target in _converted(source, tmp_path / "out", _FLAT):
    for leaf in step["leaves"]:
      _check_leaf(leaf, arrays, target)


@pytest.mark.parametrize("alpha", [None, 16.0])
def test_lora_metadata_has_alpha_only_if_given(tmp_path, alpha):
  report = convert(
    golden.checkpoints("lora_sft_unscan"),
    tmp_path / "out",
    Options(lora_alpha=alpha),
  )
  [step] = report.to_json()["steps"]
  lora = step["custom_metadata"]["lora"]
  assert lora["lora_rank"] == 4
  assert lora.get("lora_alpha") == alpha
  assert any("alpha" in note for note in step["notes"]) is (alpha is None)


def test_provenance_names_the_databases(tmp_path):
  convert(golden.checkpoints("sft_scan"), tmp_path / "out", Options(step=4))
  record = provenance.read(tmp_path / "out" / "3")
  assert record is not None
  assert set(record["source"]) == {"model_params", "optimizer_state"}
  for [database] in record["source"].values():
    assert len(bytes.fromhex(database["uuid"])) == 16
    assert database["generation"] > 0


@pytest.mark.parametrize("spelling", [".", "../model_params"])
def test_an_item_knows_its_step_however_it_is_spelled(
  tmp_path, monkeypatch, spelling
):
  source = golden.copy_checkpoints("rl_scan", tmp_path / "in") / "actor/4"
  monkeypatch.chdir(source / "model_params")
  convert(Path(spelling), tmp_path / "out", Options())
  assert [path.name for path in (tmp_path / "out").iterdir()] == ["3"]
  metadata = json.loads((tmp_path / "out/3/_CHECKPOINT_METADATA").read_text())
  assert metadata["custom_metadata"]["role"] == "actor"


def test_a_model_name_that_decides_nothing_is_no_other_conversion(tmp_path):
  source = golden.checkpoints("sft_scan")
  convert(source, tmp_path / "out", Options(model_name="qwen3-0.6b"))
  again = convert(source, tmp_path / "out", Options())
  assert [step.status for step in again.steps] == ["skipped", "skipped"]


@pytest.mark.parametrize(
  ("name", "is_noted"), [("rl_scan", True), ("sft_scan", False)]
)
def test_an_optimizer_that_others_look_like_is_noted(name, is_noted, tmp_path):
  report = convert(golden.checkpoints(name), tmp_path / "out", Options())
  notes = report.to_json()["steps"][0]["notes"]
  assert any("read as AdamW" in note for note in notes) is is_noted


def test_peak_memory_is_that_of_this_process(tmp_path):
  report = convert(golden.checkpoints("sft_scan"), tmp_path / "out", Options())
  assert 1 << 20 < report.peak_memory_bytes < 1 << 34
