"""Golden checkpoints, cut short, with flipped bits, or with files missing."""

import os
import random
import resource
import shutil
import subprocess
import sys

import pytest

from tests.corrupt.attack import Attack
from tests.support import golden, stores

_SCANNED = "sft_scan_noclip"
_ITEMS = ("model_params", "optimizer_state")
_SIDE_FILES = ("_METADATA", "_sharding", "array_metadatas/process_0")
_STACK = ("--scan_layers=true", "--layer_pattern=flat")


@pytest.fixture
def take(runner, tmp_path):
  """Returns a function that copies a golden checkpoint, to be damaged."""

  def copy(name=_SCANNED):
    made = golden.copy_checkpoints(name, tmp_path / "copy")
    made.rename(tmp_path / "in")
    shutil.rmtree(tmp_path / "copy")
    return Attack(runner, tmp_path / "in", tmp_path / "out")

  return copy


@pytest.fixture(scope="module")
def converted(runner, tmp_path_factory):
  """A good conversion of the checkpoint that others damage."""
  target = tmp_path_factory.mktemp("good") / "out"
  source = golden.checkpoints(_SCANNED)
  done = runner.run("convert", source, target, "--to=maxtext")
  assert done.code == 0
  return target


def _node_file(item):
  """Returns the only file with nodes that an item's manifest leads to."""
  [path] = (item / "d").iterdir()
  return path


def _rewrite(path, data):
  """Replaces a file, whose bytes other names may share."""
  path.unlink()
  path.write_bytes(data)


def _lengths(size):
  """Returns lengths to cut to: the ends, and some between."""
  some = random.Random(size).sample(range(size), 4)
  return sorted({0, 1, 4, 12, 16, 17, size // 2, size - 4, size - 1, *some})


def _cut_everywhere(attack, path, *words):
  data = path.read_bytes()
  for length in _lengths(len(data)):
    _rewrite(path, data[:length])
    attack.refused(*words)
  _rewrite(path, data)


@pytest.mark.parametrize("item", _ITEMS)
def test_a_manifest_cut_short(take, converted, item):
  attack = take()
  path = attack.root / "4" / item / "manifest.ocdbt"
  _cut_everywhere(attack, path, item, "manifest.ocdbt")
  _rewrite(path, path.read_bytes()[:50])
  attack.verify_survives(converted)


@pytest.mark.parametrize("item", _ITEMS)
def test_a_node_file_cut_short(take, converted, item):
  attack = take()
  path = _node_file(attack.root / "4" / item)
  _cut_everywhere(attack, path, item, f"d/{path.name}")
  _rewrite(path, path.read_bytes()[:50])
  attack.verify_survives(converted)


@pytest.mark.parametrize("item", _ITEMS)
@pytest.mark.parametrize("name", _SIDE_FILES)
def test_a_side_file_cut_short(take, converted, item, name):
  attack = take()
  path = attack.root / "4" / item / name
  _cut_everywhere(attack, path, item, name)
  _rewrite(path, path.read_bytes()[:50])
  attack.verify_survives(converted)


def test_step_metadata_cut_short(take):
  attack = take()
  path = attack.root / "4" / "_CHECKPOINT_METADATA"
  _cut_everywhere(attack, path, "_CHECKPOINT_METADATA")


def test_bytes_after_the_end(take):
  attack = take()
  item = attack.root / "4" / "model_params"
  for name in ("manifest.ocdbt", *_SIDE_FILES):
    data = (item / name).read_bytes()
    _rewrite(item / name, data + b"\0")
    attack.refused(name)
    _rewrite(item / name, data)
  node = _node_file(item)
  _rewrite(node, node.read_bytes() + b"\0")
  attack.harmless()


def _flip(data, bit):
  flipped = bytearray(data)
  flipped[bit // 8] ^= 1 << bit % 8
  return bytes(flipped)


def _flip_some(path, count):
  """Flips bits of a file one after the other; yields the bit."""
  data = path.read_bytes()
  for bit in random.Random(path.name).sample(range(len(data) * 8), count):
    _rewrite(path, _flip(data, bit))
    yield bit
  _rewrite(path, data)


@pytest.mark.parametrize("item", _ITEMS)
@pytest.mark.parametrize("name", [_SCANNED, "sft_scan_tgit"])
def test_flipped_bits_of_the_database(take, name, item):
  """Every record has a checksum: no flip goes unseen."""
  attack = take(name)
  directory = attack.root / "4" / item
  for _ in _flip_some(directory / "manifest.ocdbt", 12):
    attack.refused(item, "manifest.ocdbt")
  node = _node_file(directory)
  for _ in _flip_some(node, 12):
    attack.refused(item, node.name)


@pytest.mark.parametrize("name", _SIDE_FILES)
@pytest.mark.parametrize(
  ("checkpoint", "options"),
  [(_SCANNED, ()), ("sft_unscan_sharded", _STACK)],
)
def test_flipped_bits_of_side_files(take, name, checkpoint, options):
  """Without a checksum, a flip is an error, or makes no difference."""
  attack = take(checkpoint)
  path = attack.root / "4" / "optimizer_state" / name
  words = (name,)
  if options:
    # What does not belong together may be found in another place.
    words = ("optimizer_state",)
  for _ in _flip_some(path, 24):
    attack.refused_or_harmless(*words, options=options)
    shutil.rmtree(attack.target, ignore_errors=True)


def test_flipped_bits_of_the_step_metadata(take):
  attack = take()
  for _ in _flip_some(attack.root / "4" / "_CHECKPOINT_METADATA", 16):
    attack.refused_or_harmless("_CHECKPOINT_METADATA")
    shutil.rmtree(attack.target, ignore_errors=True)


def _referenced_files(item):
  """Returns the data files that hold values of an item."""
  return sorted(
    path for path in item.rglob("d/*") if path.stat().st_size > 100_000
  )


def test_a_data_file_that_is_missing(take, converted):
  attack = take()
  for path in _referenced_files(attack.root / "4" / "optimizer_state"):
    data = path.read_bytes()
    path.unlink()
    attack.refused(path.name)
    path.write_bytes(data)
  path.unlink()
  attack.verify_survives(converted)


def test_a_data_file_cut_short(take):
  attack = take()
  for path in _referenced_files(attack.root / "4" / "optimizer_state"):
    data = path.read_bytes()
    _rewrite(path, data[: len(data) // 2])
    attack.refused(path.name, "leaves data file")
    _rewrite(path, data)


@pytest.mark.parametrize("kind", ["empty", "directory", "link"])
def test_a_data_file_that_was_replaced(take, kind):
  attack = take()
  path = _referenced_files(attack.root / "4" / "model_params")[0]
  path.unlink()
  if kind == "empty":
    path.touch()
  elif kind == "directory":
    path.mkdir()
  else:
    path.symlink_to("/etc/passwd")
  attack.refused(path.name)


@pytest.mark.parametrize("name", ["manifest.ocdbt", *_SIDE_FILES])
@pytest.mark.parametrize("kind", ["directory", "pipe", "circle", "device"])
def test_a_file_that_is_none(take, name, kind):
  attack = take()
  path = attack.root / "4" / "model_params" / name
  path.unlink()
  if kind == "directory":
    path.mkdir()
  elif kind == "pipe":
    os.mkfifo(path)
  elif kind == "circle":
    path.symlink_to(path.name)
  else:
    path.symlink_to("/dev/zero")
  attack.refused_or_harmless("model_params")


def _run_program(*arguments):
  """Runs the program itself, with its limits and no process to share."""
  limit = 2 << 30
  return subprocess.run(
    [
      sys.executable,
      "-c",
      "from relayout.cli import main; main.main()",
      *arguments,
    ],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    capture_output=True,
    text=True,
    check=False,
  )


@pytest.mark.parametrize("command", ["convert", "inspect", "verify"])
@pytest.mark.parametrize("name", ["manifest.ocdbt", "_METADATA"])
def test_the_program_itself(take, converted, command, name):
  """The forked commands above behave as the program does."""
  attack = take()
  path = attack.root / "4" / "model_params" / name
  _rewrite(path, path.read_bytes()[:-1])
  arguments = {
    "convert": (attack.target, "--to=maxtext"),
    "inspect": (),
    "verify": (converted,),
  }[command]
  done = _run_program(command, attack.root, *arguments)
  assert done.returncode == 2
  assert done.stdout == ""
  assert done.stderr.startswith(f"relayout {command}: ")
  assert str(path.parent) in done.stderr
  assert name in done.stderr
  assert "Traceback" not in done.stderr
  assert not attack.target.exists()


# Parts of a checkpoint that are missing.


def test_values_of_one_array_are_missing(take, converted):
  """An array without its chunk is damage: all are stored, `_METADATA` says."""
  attack = take()
  item = attack.root / "4" / "model_params"
  name = "decoder.layers.mlp.wo.kernel.value"
  _delete_keys(item, f"{name}/0.0.0")
  attack.refused("model_params", name)
  attack.verify_survives(converted)


def test_one_of_several_chunks_is_missing(take):
  attack = take("sft_unscan_sharded")
  item = attack.root / "4" / "optimizer_state"
  name = "opt_state.1.0.mu.decoder.layers_1.mlp.wo.kernel.value"
  _delete_keys(item, f"{name}/0.1")
  attack.refused("optimizer_state", name, "3 of its 4 chunks")


def test_metadata_of_one_array_is_missing(take):
  attack = take()
  item = attack.root / "4" / "model_params"
  name = "decoder.layers.mlp.wo.kernel.value"
  _delete_keys(item, f"{name}/.zarray")
  attack.refused("model_params", name)


def test_the_tree_names_an_array_that_is_not_there(take):
  attack = take()
  path = attack.root / "4" / "model_params" / "_METADATA"
  data = path.read_bytes()
  _rewrite(path, data.replace(b"token_embedder", b"token_embeddex"))
  attack.refused("_METADATA", "token_embeddex.embedding.value")


def test_a_moment_is_missing(take):
  """Without `_METADATA` nothing tells what there should be, but the weights."""
  attack = take()
  item = attack.root / "4" / "optimizer_state"
  name = "opt_state.0.mu.decoder.layers.mlp.wo.kernel.value"
  _delete_keys(item, f"{name}/.zarray", f"{name}/0.0.0")
  (item / "_METADATA").unlink()
  attack.refused("decoder.layers.mlp.wo.kernel", "--params_only")


def _delete_keys(item, *keys):
  import tensorstore as ts

  store = ts.KvStore.open(stores.kvstore(item)).result()
  for key in keys:
    assert store.read(key).result().state == "value"
    store.delete_range(ts.KvStore.KeyRange(key, key + "\0")).result()
