"""A target appears whole or not at all."""

import errno
import os
import shutil

import pytest

from relayout.convert import staging
from relayout.errors import TargetExistsError
from relayout.metadata import directory


def test_appears_at_the_end(tmp_path):
  target = tmp_path / "run" / "checkpoints" / "3"
  with staging.staged(target, "0123") as temporary:
    staging.write_file(temporary / "file", b"x")
    assert not target.exists()
  assert (target / "file").read_bytes() == b"x"
  assert [path.name for path in target.parent.iterdir()] == ["3"]


def test_all_is_synced_before_it_appears(tmp_path, monkeypatch):
  synced = {}
  target = tmp_path / "run" / "3"
  fsync = os.fsync

  def record(descriptor):
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    synced[path] = target.exists()
    fsync(descriptor)

  monkeypatch.setattr(os, "fsync", record)
  with staging.staged(target, "0123") as temporary:
    (temporary / "items" / "d").mkdir(parents=True)
    staging.write_file(temporary / "items" / "d" / "file", b"x")
    made = [temporary, *temporary.rglob("*")]
  assert {path for path, late in synced.items() if not late} == {
    str(path) for path in made
  }
  assert {path for path, late in synced.items() if late} == {
    str(tmp_path),
    str(tmp_path / "run"),
  }


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_nothing(tmp_path, error):
  def fail():
    with staging.staged(tmp_path / "new" / "3", "0123") as temporary:
      (temporary / "file").write_bytes(b"x")
      raise error

  with pytest.raises(error):
    fail()
  assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_older_directories(tmp_path):
  (tmp_path / "run").mkdir()
  with (
    pytest.raises(OSError, match="full"),
    staging.staged(tmp_path / "run" / "3", "0123"),
  ):
    raise OSError("full")
  assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("kind", ["directory", "file", "dangling link"])
def test_a_target_that_appears_meanwhile_is_left_alone(tmp_path, kind):
  target = tmp_path / "3"
  appear = {
    "directory": target.mkdir,
    "file": target.touch,
    "dangling link": lambda: target.symlink_to(tmp_path / "nowhere"),
  }
  with pytest.raises(TargetExistsError), staging.staged(target, "0123"):
    appear[kind]()
  assert [path.name for path in tmp_path.iterdir()] == ["3"]


def test_a_stale_temporary_directory_does_not_block(tmp_path):
  (tmp_path / f"{directory.TEMPORARY_PREFIX}3-0123").mkdir()
  with staging.staged(tmp_path / "3", "0123"):
    pass
  assert (tmp_path / "3").is_dir()


def test_an_error_without_a_name_gets_one(tmp_path):
  full = OSError(errno.ENOSPC, "No space left on device")
  path = tmp_path / "file"
  with pytest.raises(OSError, match=r"No space.*file"), staging.naming(path):
    raise full
  (tmp_path / "there").touch()
  with pytest.raises(FileExistsError, match="there"):
    staging.write_file(tmp_path / "there", b"x")


_PART = f"{staging.PARTS}/items/000000"


def _temporary(target, identity="0123"):
  name = f"{directory.TEMPORARY_PREFIX}{target.name}-{identity}"
  return target.parent / name


def _stage_in_vain(target, identity):
  with staging.staged(target, identity) as temporary:
    (temporary / _PART).mkdir(parents=True)
    staging.write_file(temporary / _PART / "data", b"part")
    staging.write_file(temporary / "file", b"x")
    raise OSError("full")


def _fail_with_a_part(target, identity="0123"):
  """Stages a target in vain; a part and a file are there by then."""
  with pytest.raises(OSError, match="full"):
    _stage_in_vain(target, identity)


def test_parts_outlive_a_failure_and_nothing_else_does(tmp_path):
  target = tmp_path / "new" / "3"
  _fail_with_a_part(target)
  left = {p for p in _temporary(target).rglob("*") if p.is_file()}
  assert {path.name for path in left} == {"data", ".lock"}
  with staging.staged(target, "0123") as temporary:
    assert (temporary / _PART / "data").read_bytes() == b"part"
    assert not (temporary / "file").exists()
    staging.write_file(temporary / "file", b"y")
  assert [path.name for path in target.iterdir()] == ["file"]
  assert [path.name for path in target.parent.iterdir()] == ["3"]


def test_parts_of_other_work_are_removed(tmp_path):
  target = tmp_path / "3"
  _fail_with_a_part(target, "0123")
  with staging.staged(target, "4567") as temporary:
    assert not (temporary / staging.PARTS).exists()
  assert [path.name for path in tmp_path.iterdir()] == ["3"]


def test_the_same_work_at_the_same_time_is_refused(tmp_path):
  target = tmp_path / "3"
  with staging.staged(target, "0123") as temporary:
    staging.write_file(temporary / "file", b"x")
    with (
      pytest.raises(TargetExistsError, match="another process"),
      staging.staged(target, "0123"),
    ):
      pytest.fail("two at one work")
    assert (temporary / "file").exists()
  assert [path.name for path in target.iterdir()] == ["file"]


def test_the_same_work_is_refused_to_the_very_end(tmp_path, monkeypatch):
  """Syncing takes long; what is staged is not to be touched meanwhile."""
  target = tmp_path / "3"
  sync_tree = staging.sync_tree

  def sync_slowly(path):
    with (
      pytest.raises(TargetExistsError, match="another process"),
      staging.staged(target, "0123"),
    ):
      pytest.fail("two at one work")
    sync_tree(path)

  monkeypatch.setattr(staging, "sync_tree", sync_slowly)
  with staging.staged(target, "0123") as temporary:
    staging.write_file(temporary / "file", b"x")
  assert [path.name for path in target.iterdir()] == ["file"]


def test_other_work_at_the_same_time_is_left_alone(tmp_path):
  target = tmp_path / "3"

  def stage_twice():
    with staging.staged(target, "0123") as temporary:
      staging.write_file(temporary / "file", b"x")
      with staging.staged(target, "4567"):
        pass
      assert (temporary / "file").exists()

  with pytest.raises(TargetExistsError, match="appeared"):
    stage_twice()


def test_what_is_stale_is_removed_and_what_is_not_ours_stays(tmp_path):
  target = tmp_path / "3"
  _fail_with_a_part(target)
  _fail_with_a_part(tmp_path / "33")
  foreign = _temporary(target, "foreign")
  foreign.mkdir()
  (foreign / "file").touch()
  _temporary(target, "empty").mkdir()
  elsewhere = tmp_path / "elsewhere"
  elsewhere.mkdir()
  (elsewhere / ".lock").touch()
  _temporary(target, "link").symlink_to(elsewhere)
  staging.remove_stale(target)
  assert {path.name for path in tmp_path.iterdir()} == {
    foreign.name,
    _temporary(target, "link").name,
    _temporary(tmp_path / "33").name,
    "elsewhere",
  }
  assert (elsewhere / ".lock").exists()


def test_a_lock_of_a_process_that_is_gone_does_not_block(tmp_path):
  stale = _temporary(tmp_path / "3")
  stale.mkdir()
  (stale / ".lock").touch()
  (stale / "items").mkdir()
  with staging.staged(tmp_path / "3", "0123") as temporary:
    assert [path.name for path in temporary.iterdir()] == [".lock"]
  assert (tmp_path / "3").is_dir()


def test_a_directory_that_vanishes_is_named(tmp_path):
  def vanish():
    with staging.staged(tmp_path / "run" / "3", "0123") as temporary:
      shutil.rmtree(temporary)
      staging.write_file(temporary / "file", b"x")

  with pytest.raises(FileNotFoundError, match=r"3-0123"):
    vanish()
  assert list(tmp_path.iterdir()) == []
