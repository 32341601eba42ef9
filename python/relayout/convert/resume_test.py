"""A conversion that was killed goes on, and no other gets in its way."""

import shutil
import signal

import numpy as np
import pytest

from relayout.convert import rewriting
from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import CorruptCheckpointError, TargetExistsError
from relayout.metadata.directory import TEMPORARY_PREFIX
from tests.support import processes, stores

_PART_BYTES = 1 << 10
_SLOW = "items: rewriting part 3 of"
_UNSTACK = {"scan_layers": "false", "layer_pattern": "flat"}
_SECOND_PART = f"{TEMPORARY_PREFIX}*/.parts/items/000001/manifest.ocdbt"
_NUM_ARRAYS = 5
_LAYERS = 4


@pytest.fixture(scope="module")
def source(tmp_path_factory):
  """A step of stacks, each of which is rewritten as a part of its own."""
  root = tmp_path_factory.mktemp("source")
  rng = np.random.default_rng(3)
  weights = {
    f"params.params.decoder.layers.w{i}": rng.standard_normal(
      (8, _LAYERS, 16)
    ).astype(np.float32)
    for i in range(_NUM_ARRAYS)
  }
  embedding = rng.standard_normal((32, 32)).astype(np.float32)
  weights["params.params.token_embedder.embedding"] = embedding
  stores.write_item(root / "3/items", weights)
  return root


@pytest.fixture
def parts(monkeypatch):
  """Small parts, for conversions in this process."""
  monkeypatch.setattr(rewriting, "_PART_BYTES", _PART_BYTES)


def _expected(source):
  result = {}
  for name, values in stores.read_item(source / "3/items").items():
    if ".layers." not in name:
      result[name] = values
      continue
    for i in range(_LAYERS):
      layer = name.replace(".layers.", f".layers_{i}.")
      result[layer] = values[:, i]
  return result


def _check(source, target):
  found, expected = stores.read_item(target / "3/items"), _expected(source)
  assert found.keys() == expected.keys()
  for name, values in expected.items():
    assert found[name].tobytes() == values.tobytes()
  assert [path.name for path in target.iterdir()] == ["3"]


def _kill(source, target, at=_SLOW, after=_SECOND_PART):
  process = processes.start(
    source,
    target,
    _UNSTACK,
    part_bytes=_PART_BYTES,
    at={at: "kill"},
    after=after,
  )
  process.communicate(timeout=processes.SECONDS)
  assert process.returncode == -signal.SIGKILL


def _parts_of(target):
  [temporary] = target.glob(f"{TEMPORARY_PREFIX}*")
  return temporary / ".parts/items"


def _data_files(directory):
  """Returns the identity and the time of data files."""
  return {
    (path.stat().st_ino, path.stat().st_mtime_ns)
    for path in directory.rglob("d/*")
  }


def _contents(target):
  """Returns the digests of the files that hold values."""
  return sorted(map(stores.file_digest, (target / "3/items/d").iterdir()))


def test_finished_parts_are_not_done_again(source, tmp_path, parts):
  target = tmp_path / "out"
  _kill(source, target)
  done = [_parts_of(target) / f"{number:06}" for number in range(2)]
  before = set().union(*map(_data_files, done))
  assert len(before) == 4
  said = []
  convert(source, target, Options(**_UNSTACK), progress=said.append)
  _check(source, target)
  after = _data_files(target / "3/items")
  # The data of both parts, without the nodes that made databases of them.
  assert len(before & after) == 2
  assert any("part 3 of 5, " in message for message in said)
  assert not any("part 2 of 5, " in message for message in said)


def test_the_result_is_that_of_a_run_without_a_break(source, tmp_path, parts):
  _kill(source, tmp_path / "killed")
  for name in ("killed", "whole"):
    convert(source, tmp_path / name, Options(**_UNSTACK))
    _check(source, tmp_path / name)
  killed, whole = (_contents(tmp_path / name) for name in ("killed", "whole"))
  assert len(killed) == _NUM_ARRAYS + 2
  # All but the nodes, which have names of data files in them.
  assert len({*killed} & {*whole}) == _NUM_ARRAYS + 1
  for name in ("_METADATA", "_sharding", "array_metadatas/process_0"):
    files = [tmp_path / run / "3/items" / name for run in ("killed", "whole")]
    assert stores.file_digest(files[0]) == stores.file_digest(files[1]), name


@pytest.mark.parametrize("damage", ["cut manifest", "no manifest", "cut data"])
def test_a_part_that_was_cut_short_is_done_again(
  source, tmp_path, parts, damage
):
  target = tmp_path / "out"
  _kill(source, target)
  part = _parts_of(target) / "000001"
  manifest = part / "manifest.ocdbt"
  if damage == "no manifest":
    manifest.unlink()
  elif damage == "cut manifest":
    manifest.write_bytes(manifest.read_bytes()[:-5])
  else:
    values = max((part / "d").iterdir(), key=lambda path: path.stat().st_size)
    values.write_bytes(values.read_bytes()[:-5])
  convert(source, target, Options(**_UNSTACK))
  _check(source, target)


def test_a_kill_before_the_first_part_does_not_block(source, tmp_path):
  _kill(source, tmp_path / "out", "writing", after="")
  _kill(source, tmp_path / "out", "part 1 of", after="")
  convert(source, tmp_path / "out", Options(**_UNSTACK))
  _check(source, tmp_path / "out")


def test_other_options_do_not_take_up_what_was_left(source, tmp_path):
  target = tmp_path / "out"
  _kill(source, target)
  options = Options(**_UNSTACK, compression="none")
  [step] = convert(source, target, options).to_json()["steps"]
  _check(source, target)
  assert step["applied"]["num_bytes_rewritten"] == (
    _NUM_ARRAYS * 8 * _LAYERS * 16 * 4 + 32 * 32 * 4
  )


def test_a_finished_step_clears_what_another_run_left(source, tmp_path):
  target = tmp_path / "out"
  convert(source, target, Options(**_UNSTACK))
  shutil.move(target / "3", tmp_path / "3")
  _kill(source, target)
  shutil.move(tmp_path / "3", target / "3")
  again = convert(source, target, Options(**_UNSTACK))
  assert [step.status for step in again.steps] == ["skipped"]
  _check(source, target)


def test_a_second_run_at_the_same_time_is_refused(source, tmp_path):
  target = tmp_path / "out"
  process = processes.start(
    source, target, _UNSTACK, part_bytes=_PART_BYTES, at={_SLOW: "wait"}
  )
  assert process.stdout.readline() == "reached\n"
  with pytest.raises(TargetExistsError, match="another process is writing it"):
    convert(source, target, Options(**_UNSTACK))
  processes.result(process, "go on\n" * 99)
  _check(source, target)


def test_a_run_with_other_options_leaves_a_live_one_alone(source, tmp_path):
  target = tmp_path / "out"
  process = processes.start(
    source, target, _UNSTACK, part_bytes=_PART_BYTES, at={_SLOW: "wait"}
  )
  assert process.stdout.readline() == "reached\n"
  convert(source, target, Options())
  _, stderr = process.communicate("go on\n" * 99, processes.SECONDS)
  assert process.returncode == 1
  assert "TargetExistsError" in stderr
  assert "appeared during the conversion" in stderr
  assert (target / "3").is_dir()


@pytest.mark.parametrize("lost", ["temporary", "target"])
def test_a_directory_that_vanishes_gives_an_error_and_a_rerun_works(
  source, tmp_path, lost
):
  """Whoever cleans up a scratch disk does not wait for us."""
  copy, target = tmp_path / "in", tmp_path / "out"
  shutil.copytree(source, copy)
  (copy / "3/iter").mkdir()
  (copy / "3/iter/state").write_text("7")
  vanished = []

  def vanish(message):
    if "carrying" in message and not vanished:
      vanished.append(message)
      [temporary] = target.glob(f"{TEMPORARY_PREFIX}*")
      shutil.rmtree(temporary if lost == "temporary" else target)

  with pytest.raises((OSError, CorruptCheckpointError)) as error:
    convert(copy, target, Options(**_UNSTACK), progress=vanish)
  assert vanished
  assert str(target) in str(error.value)
  convert(copy, target, Options(**_UNSTACK))
  _check(source, target)


def test_a_source_that_changes_meanwhile_is_noticed(source, tmp_path, parts):
  copy = tmp_path / "in"
  shutil.copytree(source, copy)

  def change(message):
    if _SLOW in message:
      for path in (copy / "3/items/d").iterdir():
        path.write_bytes(path.read_bytes()[:10])

  with pytest.raises(CorruptCheckpointError):
    convert(copy, tmp_path / "out", Options(**_UNSTACK), progress=change)
  assert not (tmp_path / "out/3").exists()
