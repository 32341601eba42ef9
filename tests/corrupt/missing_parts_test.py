"""Checkpoints that lack what they can do without, and runs with a bad step."""

import itertools
import json
import shutil

import pytest

from tests.corrupt.attack import Attack
from tests.corrupt.runner import convert_arguments
from tests.support import golden, stores

_STACK = ("--scan_layers=true", "--layer_pattern=flat")
_SIDE_FILES = ("_METADATA", "_sharding", "array_metadatas")


@pytest.fixture
def take(runner, tmp_path):
  """Returns a function that copies a golden checkpoint, to be harmed."""

  def copy(name):
    golden.copy_checkpoints(name, tmp_path / "copy").rename(tmp_path / "in")
    shutil.rmtree(tmp_path / "copy")
    return Attack(runner, tmp_path / "in", tmp_path / "out")

  return copy


def _remove(root, name):
  for path in list(root.rglob(name)):
    if path.is_dir():
      shutil.rmtree(path)
    else:
      path.unlink()


@pytest.mark.parametrize(
  "missing",
  [
    names
    for count in (1, 2, 3)
    for names in itertools.combinations(_SIDE_FILES, count)
  ],
  ids=" ".join,
)
@pytest.mark.parametrize(
  ("name", "options"),
  [
    ("sft_scan_noclip", ()),
    ("sft_unscan_sharded", _STACK),
    ("rl_scan", ()),
    ("sft_scan_tgit", ()),
  ],
)
def test_side_files_are_missing(take, name, options, missing):
  """D18: the arrays' own metadata tells what is needed."""
  attack = take(name)
  for file in missing:
    _remove(attack.root, file)
  attack.harmless(*options)


@pytest.mark.parametrize("name", ["sft_scan_noclip", "sft_scan_tgit"])
def test_one_item_lacks_what_the_other_has(take, name):
  attack = take(name)
  for file in _SIDE_FILES:
    _remove(attack.root / "4" / "model_params", file)
  attack.harmless()


@pytest.mark.parametrize(
  "fields",
  [
    ("custom_metadata",),
    ("store_array_data_equal_to_fill_value",),
    ("use_zarr3", "use_ocdbt"),
    ("tree_metadata",),
  ],
  ids=" ".join,
)
def test_older_trees_lack_members(take, fields):
  """D18: older checkpoints have fewer fields."""
  attack = take("sft_scan_noclip")
  for path in list(attack.root.rglob("_METADATA")):
    value = json.loads(path.read_bytes())
    for field in fields:
      del value[field]
    path.write_text(json.dumps(value))
  attack.harmless()


@pytest.mark.parametrize("what", ["commit_success.txt", "_CHECKPOINT_METADATA"])
def test_a_commit_marker_is_missing(take, what):
  """D10: a copied checkpoint without it is read; the target has it."""
  attack = take("sft_scan_noclip")
  _remove(attack.root, what)
  before = golden.tree_digest(attack.root)
  attack.harmless()
  assert golden.tree_digest(attack.root) == before
  assert (attack.target / "3" / "commit_success.txt").is_file()
  assert (attack.target / "3" / "items" / "commit_success.txt").is_file()


@pytest.mark.parametrize("name", ["sft_scan_noclip", "sft_unscan_sharded"])
def test_the_merged_manifest_is_missing(take, name):
  """D7: what the hosts wrote is the whole checkpoint."""
  attack = take(name)
  for item in ("model_params", "optimizer_state"):
    (attack.root / "4" / item / "manifest.ocdbt").unlink()
    shutil.rmtree(attack.root / "4" / item / "d")
  attack.harmless(*(_STACK if "unscan" in name else ()))


def test_all_manifests_are_missing(take):
  attack = take("sft_scan_noclip")
  _remove(attack.root, "manifest.ocdbt")
  attack.refused("model_params")


def test_the_optimizer_is_missing(take):
  attack = take("sft_scan_noclip")
  shutil.rmtree(attack.root / "4" / "optimizer_state")
  attack.harmless()


def test_the_weights_are_missing(take):
  attack = take("sft_scan_noclip")
  shutil.rmtree(attack.root / "4" / "model_params")
  attack.refused("model_params")


# A run of several steps (D16).


@pytest.mark.parametrize("bad", ["2", "4"])
def test_one_bad_step_of_a_run(take, bad):
  """Nothing is written, the step is named, and the other one converts."""
  attack = take("sft_scan")
  manifest = attack.root / bad / "optimizer_state" / "manifest.ocdbt"
  manifest.write_bytes(manifest.read_bytes()[:-1])
  attack.refused(f"step {bad}", "manifest.ocdbt", "--step=N")
  good = "4" if bad == "2" else "2"
  done = attack.runner.run(
    *convert_arguments(attack.root, attack.target, f"--step={good}")
  )
  assert done.code == 0, done.stderr
  assert [path.name for path in attack.target.iterdir()] == [str(int(good) - 1)]


def test_an_unfinished_save_is_left_alone(take):
  """What Orbax was still writing is no step, and is not deleted."""
  attack = take("sft_scan")
  (attack.root / "4").rename(attack.root / "4.orbax-checkpoint-tmp-1")
  before = golden.tree_digest(attack.root)
  attack.harmless()
  assert golden.tree_digest(attack.root) == before
  assert [path.name for path in attack.target.iterdir()] == ["1"]


def test_an_unfinished_conversion_is_no_source(take):
  attack = take("sft_scan")
  (attack.root / "4").rename(attack.root / ".relayout-tmp-4-0123")
  attack.harmless()
  assert [path.name for path in attack.target.iterdir()] == ["1"]


# Stores of other forms (E6).


def _write_zarr(item, arrays):
  """Writes arrays as directories, without OCDBT."""
  import tensorstore as ts

  for name, values in arrays.items():
    spec = {
      "driver": "zarr",
      "kvstore": {"driver": "file", "path": f"{item / name}/"},
      "metadata": {"compressor": {"id": "zstd", "level": 1}},
    }
    store = ts.open(
      spec, create=True, dtype=ts.dtype(values.dtype), shape=values.shape
    ).result()
    store.write(values).result()


def test_plain_zarr_directories(take):
  """Recognised by every command, and converted."""
  attack = take("sft_scan_noclip")
  for name in ("model_params", "optimizer_state"):
    item = attack.root / "4" / name
    arrays = stores.read_item(item)
    shutil.rmtree(item)
    _write_zarr(item, arrays)
  attack.harmless()
  inspected = attack.runner.run("inspect", attack.root)
  assert inspected.code == 0
  assert "item model_params: zarr, zarr v2" in inspected.stdout


def test_both_forms_in_one_item(take):
  """An old zarr directory beside the database is no array of it (D8)."""
  attack = take("sft_scan_noclip")
  item = attack.root / "4" / "model_params"
  name, values = next(iter(stores.read_item(item).items()))
  _write_zarr(item, {name: values + 1})
  attack.refused_or_harmless("model_params")
