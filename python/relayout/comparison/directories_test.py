"""Directories that go along with a step are compared file by file."""

import os

import pytest

from relayout.comparison.directories import unlike_files
from relayout.errors import CorruptCheckpointError


def _make(root, **files):
  for name, data in files.items():
    path = root / "below" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
  return root


def test_what_differs_is_named(tmp_path):
  a = _make(tmp_path / "a", same=b"x", other=b"x", longer=b"x", left=b"x")
  b = _make(tmp_path / "b", same=b"x", other=b"y", longer=b"xx", right=b"x")
  found = dict(unlike_files(a, b))
  assert found == {
    "below/left": f"missing below {b}",
    "below/longer": "other bytes",
    "below/other": "other bytes",
    "below/right": f"missing below {a}",
  }


def test_linked_files_are_equal(tmp_path):
  a = _make(tmp_path / "a", file=b"x")
  (tmp_path / "b" / "below").mkdir(parents=True)
  os.link(a / "below" / "file", tmp_path / "b" / "below" / "file")
  assert not list(unlike_files(a, tmp_path / "b"))


def test_a_pipe_is_refused(tmp_path):
  a = _make(tmp_path / "a", file=b"x")
  os.mkfifo(a / "below" / "pipe")
  with pytest.raises(CorruptCheckpointError, match="pipe: not a regular file"):
    list(unlike_files(a, a))
