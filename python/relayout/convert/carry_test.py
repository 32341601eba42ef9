"""Directories that go along as they are."""

import os

import pytest

from relayout.convert import carry, link
from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import UnsupportedError
from tests.support import golden


def _write_tree(root):
  (root / "process_0" / "empty").mkdir(parents=True)
  (root / "state.json").write_text("{}")
  (root / "process_0" / "index").write_bytes(b"\0\1")
  return root


def _content(root):
  return {
    str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
    for path in root.rglob("*")
  }


def test_a_tree_is_linked_with_its_empty_directories(tmp_path):
  source = _write_tree(tmp_path / "iter")
  moved = carry.carry(source, tmp_path / "copy")
  assert _content(tmp_path / "copy") == _content(source)
  assert [each.method for each in moved] == [link.Method.HARD_LINK] * 2
  assert sum(each.num_bytes for each in moved) == 4


@pytest.mark.parametrize("to", ["file", "directory", "nothing"])
def test_a_symbolic_link_is_refused(tmp_path, to):
  source = _write_tree(tmp_path / "iter")
  goal = {"file": source / "state.json", "directory": source, "nothing": "x"}
  (source / "process_0" / "link").symlink_to(goal[to])
  with pytest.raises(UnsupportedError, match="process_0/link: a symbolic"):
    carry.carry(source, tmp_path / "copy")


def test_a_pipe_is_refused(tmp_path):
  os.mkfifo(_write_tree(tmp_path / "iter") / "pipe")
  with pytest.raises(UnsupportedError, match="neither a file"):
    carry.carry(tmp_path / "iter", tmp_path / "copy")


def test_directories_that_are_nested_too_deep_are_refused(tmp_path):
  (tmp_path / "iter").joinpath(*"d" * 70).mkdir(parents=True)
  with pytest.raises(UnsupportedError, match="nested too deep"):
    carry.carry(tmp_path / "iter", tmp_path / "copy")


@pytest.mark.parametrize("to", ["maxtext", "tunix"])
def test_what_else_a_step_holds_goes_along(tmp_path, to):
  source = golden.copy_checkpoints("pretrain_scan", tmp_path / "in")
  content = _content(_write_tree(source / "4" / "iter"))
  _write_tree(source / "4" / "unheard_of")
  [step] = convert(source / "4", tmp_path / "out", Options(to=to)).to_json()[
    "steps"
  ]
  for name in ("iter", "unheard_of"):
    assert _content(tmp_path / "out" / step["target"] / name) == content
  assert len(step["carried"]) == 2


def test_a_link_in_it_is_refused_before_anything_is_written(tmp_path):
  source = golden.copy_checkpoints("pretrain_scan", tmp_path / "in")
  (_write_tree(source / "4" / "iter") / "link").symlink_to("state.json")
  with pytest.raises(UnsupportedError, match="iter/link"):
    convert(source / "4", tmp_path / "out", Options(to="tunix"))
  assert not (tmp_path / "out").exists()


def test_weights_alone_take_nothing_along(tmp_path):
  source = golden.copy_checkpoints("pretrain_scan", tmp_path / "in")
  _write_tree(source / "4" / "iter")
  [step] = convert(
    source / "4", tmp_path / "out", Options(to="tunix", params_only=True)
  ).to_json()["steps"]
  assert step["carried"] == []
  assert not (tmp_path / "out" / step["target"] / "iter").exists()
