import os

import pytest

from relayout.errors import NotACheckpointError
from relayout.metadata.checkpoint import find_checkpoint
from tests.support import golden


def _make_step(path, *items, marked=True):
  for item in items:
    (path / item).mkdir(parents=True)
    (path / item / "manifest.ocdbt").write_bytes(b"")
  if marked:
    (path / "commit_success.txt").write_text("")
    (path / "_CHECKPOINT_METADATA").write_text("{}")
  return path


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_golden_runs(name):
  found = find_checkpoint(golden.checkpoints(name))
  assert found.kind == "run"
  assert found.level == ("actor" if name.startswith("rl") else "")
  assert found.steps
  assert [step.number for step in found.steps] == sorted(
    int(step.path.name) for step in found.steps
  )
  for step in found.steps:
    assert step.is_complete
    assert step.notes == ()
    assert step.items == (
      ("items",)
      if name in golden.MAXTEXT
      else ("model_params", "optimizer_state")
    )
  assert find_checkpoint(golden.checkpoints(name).parent) == found


def test_golden_step_and_item():
  path = golden.checkpoints("rl_scan") / "actor" / "4"
  step = find_checkpoint(path)
  assert (step.kind, step.level, step.item) == ("step", "actor", None)
  assert [each.number for each in step.steps] == [4]
  item = find_checkpoint(path / "model_params")
  assert (item.kind, item.level) == ("item", "actor")
  assert item.item == item.root == path / "model_params"
  assert item.steps == step.steps
  assert find_checkpoint(str(path)) == step


def test_relative_paths(monkeypatch):
  path = golden.checkpoints("sft_scan") / "4"
  monkeypatch.chdir(path / "model_params")
  assert find_checkpoint(".").steps[0].number == 4
  monkeypatch.chdir(path)
  assert find_checkpoint(".").steps[0].number == 4
  assert find_checkpoint("..").kind == "run"


def test_steps_are_in_order_of_number(tmp_path):
  for number in ("10", "9", "0"):
    _make_step(tmp_path / number, "items")
  assert [s.number for s in find_checkpoint(tmp_path).steps] == [0, 9, 10]


def test_other_directories_of_a_step(tmp_path):
  step = _make_step(tmp_path / "4", "items")
  (step / "iter").mkdir()
  (step / "iter" / "process_0-of-1.json").write_text("{}")
  (found,) = find_checkpoint(step).steps
  assert found.items == ("items",)
  assert found.other_items == ("iter",)
  assert found.is_complete


@pytest.mark.parametrize(
  ("removed", "is_complete"),
  [
    (("commit_success.txt",), True),
    (("_CHECKPOINT_METADATA",), True),
    (("commit_success.txt", "_CHECKPOINT_METADATA"), False),
  ],
)
def test_absent_markers_are_noted(tmp_path, removed, is_complete):
  _make_step(tmp_path / "4", "items")
  for name in removed:
    (tmp_path / "4" / name).unlink()
  (step,) = find_checkpoint(tmp_path).steps
  (note,) = step.notes
  assert all(name in note for name in removed)
  assert step.is_complete == is_complete


def test_unfinished_saves_are_ignored(tmp_path):
  _make_step(tmp_path / "4", "items")
  names = (
    ".relayout-tmp-6-abc",
    "5.orbax-checkpoint-tmp",
    "6.orbax-checkpoint-tmp-1700000000",
  )
  for name in names:
    _make_step(tmp_path / name, "items")
  found = find_checkpoint(tmp_path)
  assert [step.number for step in found.steps] == [4]
  assert found.ignored == names
  for name in names:
    with pytest.raises(NotACheckpointError, match="temporary directory"):
      find_checkpoint(tmp_path / name)


def test_an_unfinished_item_makes_a_step_incomplete(tmp_path):
  _make_step(tmp_path / "4", "items", "iter.orbax-checkpoint-tmp")
  (step,) = find_checkpoint(tmp_path).steps
  assert step.items == ("items",)
  assert step.ignored == ("iter.orbax-checkpoint-tmp",)
  assert not step.is_complete


def test_a_numbered_directory_without_items_is_noted(tmp_path):
  _make_step(tmp_path / "4", "items")
  (tmp_path / "6").mkdir()
  found = find_checkpoint(tmp_path)
  assert [step.number for step in found.steps] == [4]
  assert found.ignored == ("6",)
  assert str(tmp_path / "6") in found.notes[0]


def test_actor_is_taken_before_critic(tmp_path):
  _make_step(tmp_path / "checkpoints" / "actor" / "2", "model_params")
  _make_step(tmp_path / "checkpoints" / "critic" / "2", "model_params")
  found = find_checkpoint(tmp_path)
  assert found.level == "actor"
  assert found.root == tmp_path / "checkpoints" / "actor"
  assert found.ignored == ("critic",)


def test_several_runs_are_not_chosen_from(tmp_path):
  _make_step(tmp_path / "first" / "2", "items")
  assert find_checkpoint(tmp_path).level == "first"
  _make_step(tmp_path / "second" / "2", "items")
  with pytest.raises(NotACheckpointError, match="give one of first, second"):
    find_checkpoint(tmp_path)


def test_step_metadata_inside_an_item_is_noted(tmp_path):
  step = _make_step(tmp_path / "4", "items")
  (step / "items" / "_CHECKPOINT_METADATA").write_text("{}")
  assert "belongs at the step" in find_checkpoint(step).steps[0].notes[0]
  item = find_checkpoint(step / "items")
  assert item.kind == "item"
  assert "belongs at the step" in item.notes[0]


def test_an_item_alone(tmp_path):
  _make_step(tmp_path / "export", "weights", marked=False)
  found = find_checkpoint(tmp_path / "export" / "weights")
  assert (found.kind, found.steps) == ("item", ())


def test_an_item_in_zarr_form(tmp_path):
  (tmp_path / "4" / "items" / "a.kernel").mkdir(parents=True)
  (tmp_path / "4" / "items" / "a.kernel" / ".zarray").write_text("{}")
  (step,) = find_checkpoint(tmp_path).steps
  assert step.items == ("items",)


def test_an_item_without_merged_manifest(tmp_path):
  (tmp_path / "items" / "ocdbt.process_0").mkdir(parents=True)
  assert find_checkpoint(tmp_path / "items").kind == "item"


def test_links_to_directories_are_followed(tmp_path):
  _make_step(tmp_path / "real" / "4", "items")
  (tmp_path / "run").mkdir()
  (tmp_path / "run" / "4").symlink_to(tmp_path / "real" / "4")
  found = find_checkpoint(tmp_path / "run")
  assert [step.number for step in found.steps] == [4]


def test_links_in_a_circle_end(tmp_path):
  _make_step(tmp_path / "4", "items")
  for name in ("checkpoints", "actor", "5"):
    (tmp_path / name).symlink_to(tmp_path)
  (tmp_path / "6").symlink_to(tmp_path / "6")
  assert [step.number for step in find_checkpoint(tmp_path).steps] == [4]
  with pytest.raises(NotACheckpointError, match="can't be read"):
    find_checkpoint(tmp_path / "6")


@pytest.mark.parametrize(
  "path", ["gs://bucket/run/checkpoints", "s3://bucket/run"]
)
def test_remote_paths_are_refused(path):
  with pytest.raises(NotACheckpointError, match="mount the bucket"):
    find_checkpoint(path)


def test_absent_paths_say_what_is_there(tmp_path):
  _make_step(tmp_path / "4", "items")
  with pytest.raises(NotACheckpointError, match=r"does not exist; .* holds 4$"):
    find_checkpoint(tmp_path / "5" / "items")
  _make_step(tmp_path / "5.orbax-checkpoint-tmp", "items")
  with pytest.raises(NotACheckpointError, match="a save that was cut short"):
    find_checkpoint(tmp_path / "5")


def test_files_are_refused(tmp_path):
  (tmp_path / "model.ckpt").write_text("")
  with pytest.raises(NotACheckpointError, match="a file; a checkpoint is"):
    find_checkpoint(tmp_path / "model.ckpt")


@pytest.mark.parametrize(
  ("name", "hint"),
  [
    ("checkpoint", "msgpack"),
    ("config.json", "Hugging Face"),
    ("notes.txt", "found notes.txt"),
  ],
)
def test_failures_say_what_was_expected_and_found(tmp_path, name, hint):
  (tmp_path / name).write_text("")
  with pytest.raises(NotACheckpointError, match=hint) as caught:
    find_checkpoint(tmp_path)
  for word in ("`items`", "`model_params`", "manifest.ocdbt", "step number"):
    assert word in str(caught.value)


def test_empty_directories_are_refused(tmp_path):
  with pytest.raises(NotACheckpointError, match="found nothing"):
    find_checkpoint(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_directories_without_permission_are_refused(tmp_path):
  tmp_path.chmod(0)
  try:
    with pytest.raises(NotACheckpointError, match="can't be listed"):
      find_checkpoint(tmp_path)
  finally:
    tmp_path.chmod(0o755)
