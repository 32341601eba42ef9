"""Files that share their blocks, on a file system that seems to allow it."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from relayout.convert import link
from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import golden, stores

_DATA = bytes(range(256)) * 1000
_FICLONE = 0x40049409  # _IOW(0x94, 9, int) of Linux


@pytest.fixture
def no_links(monkeypatch):
  """A file system that refuses hard links."""

  def refuse(*_args, **_kwargs):
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

  monkeypatch.setattr(os, "link", refuse)


@pytest.fixture
def clones(no_links, monkeypatch):
  """A file system that refuses links and clones; the clones that it made."""
  made = []

  def clone(target, request, source):
    assert request == _FICLONE
    paths = [
      Path(os.readlink(f"/proc/self/fd/{fd}")) for fd in (source, target)
    ]
    assert os.fstat(target).st_size == 0
    size = os.fstat(source).st_size
    assert os.pwrite(target, os.pread(source, size, 0), 0) == size
    made.append(tuple(paths))
    return 0

  monkeypatch.setattr(fcntl, "ioctl", clone)
  return made


def test_a_clone_is_reported_with_the_reason(clones, tmp_path):
  source, target = tmp_path / "source", tmp_path / "target"
  source.write_bytes(_DATA)
  moved = link.transfer(source, target)
  assert moved == link.Transfer(
    link.Method.REFLINK, len(_DATA), os.strerror(errno.EXDEV)
  )
  assert clones == [(source, target)]
  assert target.read_bytes() == source.read_bytes() == _DATA
  assert target.stat().st_ino != source.stat().st_ino


@pytest.mark.parametrize(
  "number", [errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY]
)
def test_a_refused_clone_becomes_a_copy(
  no_links, tmp_path, monkeypatch, number
):
  def refuse(*_args):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(fcntl, "ioctl", refuse)
  source, target = tmp_path / "source", tmp_path / "target"
  source.write_bytes(_DATA)
  moved = link.transfer(source, target)
  assert moved == link.Transfer(
    link.Method.COPY, len(_DATA), os.strerror(errno.EXDEV)
  )
  assert target.read_bytes() == _DATA


def test_a_link_that_works_is_not_cloned(tmp_path, monkeypatch):
  monkeypatch.setattr(fcntl, "ioctl", lambda *_args: pytest.fail("cloned"))
  (tmp_path / "source").write_bytes(_DATA)
  moved = link.transfer(tmp_path / "source", tmp_path / "target")
  assert moved.method is link.Method.HARD_LINK


def test_a_conversion_counts_clones_as_shared(clones, tmp_path):
  source = golden.checkpoints("sft_scan_noclip")
  [step] = convert(source, tmp_path, Options()).to_json()["steps"]
  applied = step["applied"]
  assert dict(applied["methods"]) == {"reflink": len(clones)}
  cloned = sum(path.stat().st_size for path, _ in clones)
  assert applied["num_bytes_linked"] == cloned > 0
  assert applied["num_bytes_copied"] == 0
  assert list(applied["reasons"]) == [os.strerror(errno.EXDEV)]
  item = Path(step["target"], "items")
  values = stores.read_item(item)
  sources = stores.read_item(source / "4/model_params")
  name = "decoder.decoder_norm.scale"
  found = values[f"params.params.{name}"].tobytes()
  assert found == sources[f"{name}.value"].tobytes()
