"""What `_METADATA` and `array_metadatas` of a target say, against its store."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import golden, stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")
_FILL_FLAG = "store_array_data_equal_to_fill_value"


def _entries(item: Path) -> list[dict]:
  """Returns the entries of `array_metadatas`, in the file's order."""
  content = json.loads((item / "array_metadatas/process_0").read_text())
  return [entry["array_metadata"] for entry in content["array_metadatas"]]


def _by_name(item: Path) -> dict[str, dict]:
  entries = _entries(item)
  found = {entry["param_name"]: entry for entry in entries}
  assert len(found) == len(entries)
  return found


def _written_chunks(item: Path) -> dict[str, list[int]]:
  """Returns the shape of what one device writes at once, by array name."""
  store = ts.KvStore.open(stores.kvstore(item)).result()
  result = {}
  for name, driver in stores.array_names(item).items():
    if driver == "zarr":
      result[name] = json.loads(store[f"{name}/.zarray"])["chunks"]
      continue
    metadata = json.loads(store[f"{name}/zarr.json"])
    result[name] = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    for codec in metadata["codecs"]:
      if codec["name"] == "sharding_indexed":
        result[name] = codec["configuration"]["chunk_shape"]
  return result


def _expected_write_shape(leaf, sources) -> list[int]:
  """Returns a leaf's write_shape by those of its sources."""
  if leaf["origin"] == "derived":
    return leaf["shape"]
  shapes = [sources[label]["write_shape"] for label in leaf["from"]]
  assert all(shape == shapes[0] for shape in shapes)
  shape = list(shapes[0])
  if leaf["origin"] == "stacked":
    for axis in leaf["layer_axes"]:
      shape.insert(axis, 1)
  return shape


def _check_step(step) -> None:
  """Checks the side files of one converted step against both stores."""
  item = Path(step["target"], "items")
  sources = {
    f"{part.name}/{name}": entry
    for part in Path(step["source"]).iterdir()
    if part.is_dir()
    for name, entry in _by_name(part).items()
  }
  entries = _by_name(item)
  assert entries.keys() == stores.array_names(item).keys()
  leaves = {
    leaf["name"]: leaf
    for leaf in step["leaves"]
    if "shape" in leaf and leaf["item"] == "items"
  }
  assert leaves.keys() == entries.keys()
  chunks = _written_chunks(item)
  for name, leaf in leaves.items():
    entry = entries[name]
    assert len(entry["write_shape"]) == len(leaf["shape"]), name
    assert entry["write_shape"] == _expected_write_shape(leaf, sources), name
    assert entry["chunk_shape"] == chunks[name], name


@pytest.mark.parametrize(
  ("name", "options"),
  [
    ("sft_unscan", _KEEP),
    ("sft_unscan", _FLAT),
    ("sft_unscan_sharded", _KEEP),
    ("sft_unscan_sharded", _FLAT),
    ("sft_scan_tgit", _KEEP),
    ("distill_scan_tmid", _KEEP),
    ("rl_unscan", _FLAT),
  ],
)
def test_shapes_are_those_of_the_source(tmp_path, name, options):
  report = convert(golden.checkpoints(name), tmp_path, options).to_json()
  assert report["steps"]
  for step in report["steps"]:
    origins = {leaf["origin"] for leaf in step["leaves"]}
    assert ("stacked" in origins) is (options is _FLAT)
    _check_step(step)


def _write_shards(step: Path) -> None:
  """Writes two layers in zarr shards of several inner chunks.

  Two zarr shards are one device's part.
  """
  values = {
    f"decoder.layers_{layer}.{name}.value": np.ones(shape, np.float32)
    for layer in range(2)
    for name, shape in (("wi", (8, 12)), ("scale", (8,)))
  }
  item = step / "model_params"
  inner = {name: (2, 3)[: values[name].ndim] for name in values}
  chunks = {name: (4, 6)[: values[name].ndim] for name in values}
  parts = {name: (8, 6)[: values[name].ndim] for name in values}
  stores.write_item(
    item, values, zarr_format=3, chunks=chunks, inner_chunks=inner
  )
  entries = [
    {
      "param_name": name,
      "write_shape": list(parts[name]),
      "chunk_shape": list(inner[name]),
      "ext_metadata": None,
    }
    for name in values
  ]
  content = {"array_metadatas": [{"array_metadata": e} for e in entries]}
  (item / "array_metadatas").mkdir()
  (item / "array_metadatas/process_0").write_text(json.dumps(content))


@pytest.mark.parametrize("options", [_KEEP, _FLAT], ids=["kept", "stacked"])
def test_chunks_are_the_inner_ones_of_zarr_shards(tmp_path, options):
  _write_shards(tmp_path / "in/4")
  report = convert(tmp_path / "in", tmp_path / "out", options).to_json()
  [step] = report["steps"]
  _check_step(step)
  entries = _by_name(Path(step["target"], "items"))
  prefix = "params.params.decoder.layers"
  if options is _KEEP:
    wanted = {"wi": [[8, 6], [2, 3]], "scale": [[8], [2]]}
    prefix += "_1"
  else:
    wanted = {"wi": [[8, 1, 6], [2, 1, 3]], "scale": [[8, 1], [2, 1]]}
  for name, (write_shape, chunk_shape) in wanted.items():
    entry = entries[f"{prefix}.{name}"]
    assert entry["write_shape"] == write_shape
    assert entry["chunk_shape"] == chunk_shape


@pytest.mark.parametrize("options", [_KEEP, _FLAT], ids=["kept", "stacked"])
def test_shapes_of_a_source_that_records_none(tmp_path, options):
  values = {
    f"decoder.layers_{layer}.wi.value": np.ones((8, 12), np.float32)
    for layer in range(2)
  }
  chunks = dict.fromkeys(values, (4, 6))
  stores.write_item(tmp_path / "in/4/model_params", values, chunks=chunks)
  convert(tmp_path / "in", tmp_path / "out", options)
  wanted = [4, 6] if options is _KEEP else [4, 1, 6]
  for entry in _entries(tmp_path / "out/3/items"):
    assert entry["write_shape"] == entry["chunk_shape"] == wanted


def test_the_tree_has_the_write_shapes_too(tmp_path):
  convert(golden.checkpoints("sft_unscan_sharded"), tmp_path, _FLAT)
  item = tmp_path / "3/items"
  tree = json.loads((item / "_METADATA").read_text())["tree_metadata"]
  found = {
    ".".join(key["key"] for key in leaf["key_metadata"]): leaf["value_metadata"]
    for leaf in tree.values()
  }
  shapes = {name: value.get("write_shape") for name, value in found.items()}
  entries = _by_name(item)
  assert shapes.pop("opt_state.1") is None
  assert shapes == {name: entries[name]["write_shape"] for name in entries}


def test_the_kind_of_an_rng_key_is_kept(tmp_path):
  source = golden.checkpoints("distill_scan_tmid")
  [step] = convert(source, tmp_path, _KEEP).to_json()["steps"]
  recorded = {
    f"model_params/{name}": entry["ext_metadata"]
    for name, entry in _by_name(source / "4/model_params").items()
    if entry["ext_metadata"]
  }
  wanted = {
    leaf["name"]: recorded[label]
    for leaf in step["leaves"]
    if leaf["item"] == "items"
    for label in leaf["from"]
    if label in recorded
  }
  assert len(wanted) == len(recorded) > 1
  found = {
    entry["param_name"]: entry["ext_metadata"]
    for entry in _entries(Path(step["target"], "items"))
    if entry["ext_metadata"]
  }
  assert found == wanted
  kinds = {str(value) for value in found.values()}
  assert kinds == {"{'random_key_impl': 'unsafe_rbg'}"}


def test_custom_metadata_of_rl_is_kept(tmp_path):
  source = golden.checkpoints("rl_scan")
  steps = convert(source, tmp_path, _KEEP).to_json()["steps"]
  found = [
    json.loads(Path(step["target"], "_CHECKPOINT_METADATA").read_text())
    for step in steps
  ]
  assert [metadata["custom_metadata"] for metadata in found] == [
    {
      "global_step": number,
      "role": "actor",
      "scan_layers": True,
      "param_scan_axis": 1,
    }
    for number in (2, 4)
  ]


@pytest.mark.parametrize("item", [None, "model_params", "optimizer_state"])
def test_whether_fill_values_are_stored(tmp_path, item):
  source = golden.copy_checkpoints("sft_scan_noclip", tmp_path)
  if item is not None:
    path = source / "4" / item / "_METADATA"
    metadata = json.loads(path.read_text())
    assert metadata[_FILL_FLAG] is True
    path.write_text(json.dumps(metadata | {_FILL_FLAG: False}))
  convert(source, tmp_path / "out", _KEEP)
  target = json.loads((tmp_path / "out/3/items/_METADATA").read_text())
  assert target[_FILL_FLAG] is (item is None)
