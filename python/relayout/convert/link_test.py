"""Hard link, else reflink, else copy."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from relayout.convert import link

_DATA = bytes(range(256)) * 1000


@pytest.fixture
def source(tmp_path):
  path = tmp_path / "source"
  path.write_bytes(_DATA)
  return path


@pytest.fixture
def other_file_system():
  """A directory on a file system of its own: memory."""
  with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
    yield Path(directory)


def test_one_file_system_shares_the_file(source, tmp_path):
  moved = link.transfer(source, tmp_path / "target")
  assert moved == link.Transfer(link.Method.HARD_LINK, len(_DATA))
  assert (tmp_path / "target").stat().st_ino == source.stat().st_ino


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_a_symbolic_link_is_followed(source, tmp_path, kind):
  (tmp_path / "link").symlink_to(source if kind == "absolute" else source.name)
  (tmp_path / "out").mkdir()
  target = tmp_path / "out" / "target"
  moved = link.transfer(tmp_path / "link", target)
  assert moved == link.Transfer(link.Method.HARD_LINK, len(_DATA))
  assert not target.is_symlink()
  source.unlink()
  assert target.read_bytes() == _DATA


def test_two_file_systems_copy_and_say_why(source, other_file_system):
  assert source.stat().st_dev != other_file_system.stat().st_dev
  target = other_file_system / "target"
  moved = link.transfer(source, target)
  assert moved.method is not link.Method.HARD_LINK
  assert moved.reason == os.strerror(errno.EXDEV)
  assert moved.num_bytes == len(_DATA)
  assert target.read_bytes() == _DATA


@pytest.mark.parametrize(
  "number", [errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP]
)
def test_a_refused_link_is_replaced(source, tmp_path, monkeypatch, number):
  def refuse(*_args, **_kwargs):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(os, "link", refuse)
  moved = link.transfer(source, tmp_path / "target")
  assert moved.reason == os.strerror(number)
  assert (tmp_path / "target").read_bytes() == _DATA
  assert (tmp_path / "target").stat().st_ino != source.stat().st_ino


def test_other_errors_are_not_hidden(source, tmp_path):
  with pytest.raises(FileNotFoundError):
    link.transfer(tmp_path / "missing", tmp_path / "target")
  (tmp_path / "there").write_bytes(b"theirs")
  with pytest.raises(FileExistsError):
    link.transfer(source, tmp_path / "there")
  assert (tmp_path / "there").read_bytes() == b"theirs"
