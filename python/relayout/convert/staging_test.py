"""A target appears whole or not at all."""

import errno
import os

import pytest

from relayout.convert import staging
from relayout.errors import TargetExistsError
from relayout.metadata import directory


def test_appears_at_the_end(tmp_path):
  target = tmp_path / "run" / "checkpoints" / "3"
  with staging.staged(target) as temporary:
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
  with staging.staged(target) as temporary:
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
    with staging.staged(tmp_path / "new" / "3") as temporary:
      (temporary / "file").write_bytes(b"x")
      raise error

  with pytest.raises(error):
    fail()
  assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_older_directories(tmp_path):
  (tmp_path / "run").mkdir()
  with (
    pytest.raises(OSError, match="full"),
    staging.staged(tmp_path / "run" / "3"),
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
  with pytest.raises(TargetExistsError), staging.staged(target):
    appear[kind]()
  assert [path.name for path in tmp_path.iterdir()] == ["3"]


def test_a_stale_temporary_directory_does_not_block(tmp_path):
  (tmp_path / f"{directory.TEMPORARY_PREFIX}3-0123").mkdir()
  with staging.staged(tmp_path / "3"):
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
