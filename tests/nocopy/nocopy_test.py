"""A conversion copies nothing, and what it makes stands on its own."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.corrupt.runner import convert_arguments
from tests.support import golden, stores

_MIB = 1 << 20
_LAYERS = 4
_MATRICES = 5
_STACK = ("--scan_layers=true", "--layer_pattern=flat")


def _weights():
  """Yields name and shape of each weight of a model of 88 MiB."""
  yield "token_embedder.embedding", (2048, 1024)
  for layer in range(_LAYERS):
    for matrix in range(_MATRICES):
      yield f"decoder.layers_{layer}.mlp.wi_{matrix}.kernel", (1024, 1024)


def _write_checkpoint(step: Path) -> int:
  """Writes weights and moments that don't compress; returns their bytes."""
  rng = np.random.default_rng(7)

  def values(shape):
    return rng.integers(1 << 32, size=shape, dtype=np.uint32).view(np.float32)

  model = {f"{name}.value": values(shape) for name, shape in _weights()}
  state = {
    f"opt_state.0.{slot}.{name}.value": values(shape)
    for slot in ("mu", "nu")
    for name, shape in _weights()
  }
  total = sum(array.nbytes for array in (*model.values(), *state.values()))
  for count in ("opt_state.0.count", "opt_state.2.count"):
    state[f"{count}.value"] = np.int32(1000)
  state["step.value"] = np.uint32(1000)
  chunks = {name: (512, 1024) for name in (*model, *state) if "kernel" in name}
  stores.write_item(step / "model_params", model, chunks=chunks)
  stores.write_item(step / "optimizer_state", state, chunks=chunks)
  return total


def _digests(item):
  return {name: stores.digest(x) for name, x in stores.read_item(item).items()}


def _files(root):
  """Returns inode and size of each file below `root`."""
  return {
    path: (path.stat().st_ino, path.stat().st_size)
    for path in root.rglob("*")
    if path.is_file()
  }


def test_a_large_checkpoint(runner, tmp_path):
  source, target = tmp_path / "in" / "1000", tmp_path / "out"
  total = _write_checkpoint(source)
  assert total >= 256 * _MIB
  before = golden.tree_digest(source)

  done = runner.run(*convert_arguments(source, target, *_STACK, "--json"))
  assert done.code == 0, done.stderr
  [step] = json.loads(done.stdout)["steps"]

  assert golden.tree_digest(source) == before
  shared = {found[0] for found in before.values()}
  new = {
    path: size
    for path, (inode, size) in _files(target).items()
    if inode not in shared
  }
  store = sum(
    size
    for path, size in new.items()
    if path.name == "manifest.ocdbt" or path.parent.name == "d"
  )
  side = sum(new.values()) - store
  assert 0 < store < total / 1000
  assert 0 < side <= 2048 * len(step["leaves"])
  applied = step["applied"]
  assert applied["num_bytes_written"] == store + side
  assert applied["num_side_bytes"] == side
  assert applied["num_bytes_copied"] == 0
  assert applied["num_bytes_linked"] >= total
  assert [method for method, _ in applied["methods"]] == ["hard link"]

  assert runner.run("verify", source, target).code == 0
  item = target / "999" / "items"
  found = _digests(item)
  shutil.rmtree(tmp_path / "in")
  assert _digests(item) == found
  assert len(found) == 3 * (1 + _MATRICES) + 3


@pytest.fixture
def source(tmp_path):
  """A golden checkpoint of two steps, to be harmed."""
  return golden.copy_checkpoints("sft_unscan", tmp_path / "in")


def _report(runner, source, target, setup=""):
  """Converts with `setup`; returns the applied part of each step's report."""
  arguments = convert_arguments(source, target, *_STACK, "--json")
  done = runner.run(*arguments, setup=setup)
  assert done.code == 0, done.stderr
  return [step["applied"] for step in json.loads(done.stdout)["steps"]]


def _assert_same(left, right):
  """Checks that two conversions hold the same arrays."""
  assert {path.name for path in left.iterdir()} == {
    path.name for path in right.iterdir()
  }
  for step in left.iterdir():
    assert _digests(step / "items") == _digests(right / step.name / "items")


def test_two_file_systems(runner, source, tmp_path, memory):
  """Where links can't lead, data is copied, and the report says so."""
  assert memory.stat().st_dev != source.stat().st_dev
  _report(runner, source, tmp_path / "out")
  before = golden.tree_digest(source)
  for applied in _report(runner, source, memory / "out"):
    assert applied["num_bytes_linked"] == 0
    assert applied["num_bytes_copied"] > 1_000_000
    assert [method for method, _ in applied["methods"]] == ["copy"]
    assert applied["reasons"] == [os.strerror(18)]
  assert golden.tree_digest(source) == before
  _assert_same(tmp_path / "out", memory / "out")
  assert runner.run("verify", source, memory / "out").code == 0


def test_the_table_says_what_was_copied(runner, source, memory):
  done = runner.run(*convert_arguments(source, memory / "out"))
  assert "by copy" in done.stdout
  assert "not linked" in done.stdout
  assert os.strerror(18) in done.stdout


@pytest.mark.parametrize("number", ["EPERM", "EMLINK", "EOPNOTSUPP"])
def test_a_link_that_is_refused(runner, source, tmp_path, number):
  setup = (
    "import errno, os\n"
    "def refuse(*args, **kwargs):\n"
    f"  raise OSError(errno.{number}, os.strerror(errno.{number}))\n"
    "os.link = refuse\n"
  )
  _report(runner, source, tmp_path / "linked")
  for applied in _report(runner, source, tmp_path / "copied", setup):
    assert not {method for method, _ in applied["methods"]} & {"hard link"}
    assert len(applied["reasons"]) == 1
  _assert_same(tmp_path / "linked", tmp_path / "copied")
  sources = {found[0] for found in _files(source).values()}
  copies = {found[0] for found in _files(tmp_path / "copied").values()}
  assert not sources & copies


def test_some_links_are_refused(runner, source, tmp_path):
  """Files at the limit of links are copied, the others linked."""
  setup = (
    "import errno, os\n"
    "link, calls = os.link, []\n"
    "def refuse(*args, **kwargs):\n"
    "  calls.append(args)\n"
    "  if len(calls) % 3 == 0:\n"
    "    raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))\n"
    "  return link(*args, **kwargs)\n"
    "os.link = refuse\n"
  )
  for applied in _report(runner, source, tmp_path / "out", setup):
    methods = dict(applied["methods"])
    assert methods.pop("hard link") > 0
    assert sum(methods.values()) > 0
  assert runner.run("verify", source, tmp_path / "out").code == 0


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_data_files_that_are_links(runner, source, tmp_path, kind):
  """The target holds files, not links that lead back into the source."""
  _report(runner, source, tmp_path / "before")
  for path in list(source.rglob("d/*")):
    hidden = path.with_name(f"hidden-{path.name}")
    path.rename(hidden)
    path.symlink_to(hidden if kind == "absolute" else hidden.name)
  _report(runner, source, tmp_path / "out")
  assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))
  shutil.rmtree(source)
  _assert_same(tmp_path / "before", tmp_path / "out")


def test_the_source_itself_is_a_link(runner, source, tmp_path):
  (tmp_path / "link").symlink_to(source)
  _report(runner, tmp_path / "link", tmp_path / "out")
  assert runner.run("verify", source, tmp_path / "out").code == 0
  inside = tmp_path / "link" / "out"
  done = runner.run(*convert_arguments(source, inside))
  assert done.code == 2
  assert "never touched" in done.stderr


_OBEY_PERMISSIONS = """
import ctypes
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
nothing = (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(header, nothing) == 0
"""
"""Gives up what lets root pass over permissions."""


def test_a_source_that_is_read_only(runner, source, tmp_path):
  for path in (*source.rglob("*"), source):
    path.chmod(0o555 if path.is_dir() else 0o444)
  _report(runner, source, tmp_path / "out", _OBEY_PERMISSIONS)
  assert runner.run("verify", source, tmp_path / "out").code == 0


def test_a_source_that_may_not_be_read(runner, source, tmp_path):
  path = next(source.rglob("manifest.ocdbt"))
  path.chmod(0)
  done = runner.run(
    *convert_arguments(source, tmp_path / "out"), setup=_OBEY_PERMISSIONS
  )
  assert done.code == 2, done.stderr
  assert "Permission denied" in done.stderr
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["read-only", "a file", "a dangling link"])
def test_a_target_that_can_not_be_written(runner, source, tmp_path, kind):
  parent = tmp_path / "parent"
  if kind == "read-only":
    parent.mkdir(mode=0o555)
  elif kind == "a file":
    parent.write_bytes(b"theirs")
  else:
    parent.symlink_to(tmp_path / "nowhere" / "at all")
  done = runner.run(
    *convert_arguments(source, parent / "out"), setup=_OBEY_PERMISSIONS
  )
  assert done.code == 2, done.stderr
  assert not done.crashed
  assert str(parent) in done.stderr
  assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "parent"]
  if kind == "a file":
    assert parent.read_bytes() == b"theirs"


@pytest.mark.parametrize("file_size", [0, 100, 1000, 4000, 10_000, 100_000])
@pytest.mark.parametrize("place", ["beside", "in memory"])
def test_no_room_for_the_target(
  runner, source, tmp_path, memory, file_size, place
):
  """A write that fails half-way leaves nothing, whatever it was writing."""
  base = tmp_path / "base" if place == "beside" else memory
  base.mkdir(exist_ok=True)
  before = golden.tree_digest(source)
  done = runner.run(
    *convert_arguments(source, base / "run" / "out", "--step=4", *_STACK),
    file_size=file_size,
  )
  assert not done.crashed, done.stderr
  if file_size < 100_000 or place == "in memory":
    assert done.code == 2
    assert "File too large" in done.stderr
    assert str(base / "run") in done.stderr
  if done.code:
    assert list(base.iterdir()) == []
  else:
    target = base / "run" / "out"
    assert runner.run("verify", source, target, "--step=4").code == 0
  assert golden.tree_digest(source) == before


def _die(where, action="os.kill(os.getpid(), 9)"):
  """Returns a setup that does `action` when `where` is called."""
  module, _, function = where.rpartition(".")
  return (
    "import os, shutil\n"
    f"from relayout.convert import {module}\n"
    f"call = {module}.{function}\n"
    "def instead(*args, **kwargs):\n"
    f"  {action}\n"
    "  return call(*args, **kwargs)\n"
    f"{module}.{function} = instead\n"
  )


_MOMENTS = (
  "link.transfer",
  "side_files.item_files",
  "side_files.step_files",
  "staging.sync_tree",
)


@pytest.mark.parametrize("where", _MOMENTS)
def test_killed_and_run_again(runner, source, tmp_path, where):
  """D11: no half step, and a second run goes on."""
  target = tmp_path / "out"
  arguments = convert_arguments(source, target, *_STACK)
  assert runner.run(*arguments, setup=_die(where)).code is None
  left = sorted(path.name for path in target.iterdir())
  assert all(name.startswith(".relayout-tmp-") for name in left)
  again = runner.run(*arguments)
  assert again.code == 0, again.stderr
  assert runner.run("verify", source, target).code == 0
  assert runner.run(*arguments).code == 0


@pytest.mark.parametrize("where", _MOMENTS)
def test_the_target_vanishes_and_run_again(runner, source, tmp_path, where):
  """D11: hours of work must not end in a traceback, nor in half a target."""
  target = tmp_path / "out"
  arguments = convert_arguments(source, target, *_STACK)
  before = golden.tree_digest(source)
  action = f"shutil.rmtree({str(target)!r})"
  done = runner.run(*arguments, setup=_die(where, action))
  assert done.code == 2, done.stderr
  assert not done.crashed
  assert str(target) in done.stderr
  assert not target.exists()
  assert golden.tree_digest(source) == before
  assert runner.run(*arguments).code == 0
  assert runner.run("verify", source, target).code == 0


def test_the_source_changes_meanwhile(runner, source, tmp_path):
  """A data file that grows or vanishes while it is linked is noticed."""
  files = source.rglob("4/model_params/**/d/*")
  large = max(files, key=lambda path: path.stat().st_size)
  for action in (
    f"open({str(large)!r}, 'ab').write(b'more')",
    f"os.path.exists({str(large)!r}) and os.unlink({str(large)!r})",
  ):
    done = runner.run(
      *convert_arguments(source, tmp_path / "out", "--step=4"),
      setup=_die("link.transfer", action),
    )
    assert done.code == 2, done.stderr
    assert not done.crashed
    assert large.name in done.stderr
    assert not (tmp_path / "out").exists()
