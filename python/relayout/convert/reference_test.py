"""A target that looks just like an existing checkpoint, or a full account."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import (
  LayoutError,
  NotACheckpointError,
  OptionError,
  UnsupportedError,
)
from tests.support import golden, stores


def _step(root: Path) -> Path:
  steps = [path.parent for path in root.rglob("_CHECKPOINT_METADATA")]
  return max(steps, key=lambda path: int(path.name))


def _convert(source, out, reference, **options) -> Path:
  made = Options(to="", like=reference, **options)
  [step] = convert(source, out, made).to_json()["steps"]
  return Path(step["target"])


def _tree(item):
  """Returns the leaves in the file's order, with the kinds of their keys."""
  tree = json.loads((item / "_METADATA").read_text())["tree_metadata"]
  return [
    [(key["key"], key["key_type"]) for key in leaf["key_metadata"]]
    for leaf in tree.values()
  ]


def _shapes(item):
  return {
    name: (values.shape, str(values.dtype))
    for name, values in stores.read_item(item).items()
  }


def _items(step):
  return {
    path.parent.name
    for path in step.glob("*/manifest.ocdbt")
    if path.parent.name != "relayout"
  }


@pytest.mark.parametrize(
  ("source", "reference"),
  [
    ("pretrain_scan", "sft_scan"),
    ("pretrain_scan", "dpo_scan"),
    ("pretrain_scan", "sft_scan_tgit"),
    ("pretrain_scan", "sft_unscan"),
    ("pretrain_unscan", "sft_scan"),
    ("pretrain_unscan", "pretrain_scan"),
    ("sft_unscan", "pretrain_scan"),
    ("sft_scan", "rl_scan"),
    ("pretrain_scan", "pretrain_scan_sharded"),
  ],
)
def test_names_order_types_and_shardings_are_those_of_the_reference(
  source, reference, tmp_path
):
  like = _step(golden.checkpoints(reference))
  pattern = "flat" if "unscan" in source + reference else ""
  target = _convert(
    _step(golden.checkpoints(source)),
    tmp_path,
    like,
    layer_pattern=pattern,
  )
  assert _items(target) == _items(like)
  for item in _items(like):
    assert _tree(target / item) == _tree(like / item)
    assert _shapes(target / item) == _shapes(like / item)
    sharding = json.loads((target / item / "_sharding").read_text())
    assert sharding == json.loads((like / item / "_sharding").read_text())


def test_a_run_stands_for_its_newest_step(tmp_path):
  target = _convert(
    _step(golden.checkpoints("pretrain_scan")),
    tmp_path,
    golden.checkpoints("sft_scan"),
  )
  assert _items(target) == {"model_params", "optimizer_state"}


_WEIGHTS = {
  "decoder.layers.mlp.wi.kernel": np.arange(24, dtype=np.float32).reshape(
    4, 2, 3
  ),
  "decoder.norm.scale": np.arange(4, dtype=np.float32),
}


def _write(root: Path, weights) -> Path:
  """Writes a step of MaxText with weights alone."""
  stores.write_item(
    root / "3/items", {f"params.params.{k}": v for k, v in weights.items()}
  )
  return root


def _changed(**changes):
  changed = {name.replace("__", "."): value for name, value in changes.items()}
  weights = _WEIGHTS | changed
  return {name: v for name, v in weights.items() if v is not None}


def test_types_are_cast_to_those_of_the_reference(tmp_path):
  source = _write(tmp_path / "in", _WEIGHTS)
  half = {k: v.astype(ml_dtypes.bfloat16) for k, v in _WEIGHTS.items()}
  target = _convert(source, tmp_path / "out", _write(tmp_path / "ref", half))
  found = stores.read_item(target / "items")
  for name, values in half.items():
    assert found[f"params.params.{name}"].dtype == values.dtype
    assert found[f"params.params.{name}"].tobytes() == values.tobytes()


def test_layers_of_a_stack_become_arrays_of_one_type(tmp_path):
  source = _write(tmp_path / "in", _WEIGHTS)
  stack = _WEIGHTS["decoder.layers.mlp.wi.kernel"]
  norm = {"decoder.norm.scale": _WEIGHTS["decoder.norm.scale"]}
  layers = {
    "decoder.layers_0.mlp.wi.kernel": stack[:, 0],
    "decoder.layers_1.mlp.wi.kernel": stack[:, 1].astype(ml_dtypes.bfloat16),
  }
  reference = _write(tmp_path / "ref", norm | layers)
  with pytest.raises(UnsupportedError, match=r"layers_1.*bfloat16.*layers_0"):
    _convert(source, tmp_path / "out", reference, layer_pattern="flat")


def test_every_difference_is_listed(tmp_path):
  source = _write(tmp_path / "in", _WEIGHTS)
  reference = _write(
    tmp_path / "ref",
    _changed(
      decoder__norm__scale=np.zeros(5, np.float32),
      decoder__layers__mlp__wi__kernel=None,
      decoder__layers__mlp__wi__bias=np.zeros((2, 3), np.float32),
      decoder__extra=np.zeros(3, np.int32),
    ),
  )
  with pytest.raises(LayoutError) as error:
    _convert(source, tmp_path / "out", reference)
  message = str(error.value)
  assert "4 differences" in message
  lines = {line.strip() for line in message.splitlines()[1:]}
  prefix = "params.params.decoder"
  assert lines == {
    f"{prefix}.extra: missing; the reference has int32 [3]",
    f"{prefix}.layers.mlp.wi.bias: missing; the reference has float32 [2, 3]",
    f"{prefix}.layers.mlp.wi.kernel: float32 [4, 2, 3]; the reference has no "
    "such leaf",
    f"{prefix}.norm.scale: float32 [4]; the reference has float32 [5]",
  }
  assert not (tmp_path / "out").exists()


def test_integers_are_never_cast(tmp_path):
  table = np.arange(6, dtype=np.int32)
  source = _write(tmp_path / "in", _changed(decoder__table=table))
  other = _changed(decoder__table=table.astype(np.float32))
  with pytest.raises(LayoutError, match=r"table: int32 \[6\]; the reference"):
    _convert(source, tmp_path / "out", _write(tmp_path / "ref", other))


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"to": "maxtext"}, "--to=maxtext contradicts"),
    ({"scan_layers": "false"}, "--scan_layers=false contradicts"),
    ({"scan_axis": 2}, "records"),
    ({"adapter": "base"}, "--adapter=base contradicts"),
    ({"optimizer_wrappers": "none"}, "--optimizer_wrappers=none contradicts"),
  ],
)
def test_options_that_contradict_the_reference_are_refused(
  options, message, tmp_path
):
  reference = golden.copy_checkpoints("sft_scan", tmp_path)
  path = _step(reference) / "_CHECKPOINT_METADATA"
  metadata = json.loads(path.read_text())
  metadata["custom_metadata"] = {"param_scan_axis": 1}
  path.write_text(json.dumps(metadata))
  options = {"to": "", **options}
  with pytest.raises(OptionError, match=message):
    convert(
      golden.checkpoints("pretrain_scan") / "4",
      tmp_path / "out",
      Options(like=reference, **options),
    )
  assert not (tmp_path / "out").exists()


def test_options_that_agree_with_the_reference_are_taken(tmp_path):
  target = _convert(
    _step(golden.checkpoints("pretrain_scan")),
    tmp_path,
    golden.checkpoints("sft_scan"),
    scan_layers="true",
    scan_axis=1,
    adapter="",
    optimizer_wrappers="clip",
  )
  assert _items(target) == {"model_params", "optimizer_state"}


def test_weights_alone_make_weights_alone(tmp_path):
  reference = _write(tmp_path / "ref", _WEIGHTS)
  weights = {f"{name}.value": v for name, v in _WEIGHTS.items()}
  stores.write_item(tmp_path / "in/4/model_params", weights)
  stores.write_item(
    tmp_path / "in/4/optimizer_state", {"step.value": np.uint32(4)}
  )
  target = _convert(tmp_path / "in", tmp_path / "out", reference)
  assert stores.array_names(target / "items").keys() == {
    f"params.params.{name}" for name in _WEIGHTS
  }


def test_an_item_is_no_reference(tmp_path):
  source = golden.checkpoints("pretrain_scan") / "4"
  reference = golden.checkpoints("sft_scan") / "4/model_params"
  with pytest.raises(OptionError, match="name the step"):
    _convert(source, tmp_path / "out", reference)


def test_a_reference_that_is_no_checkpoint_is_refused(tmp_path):
  with pytest.raises(NotACheckpointError):
    _convert(golden.checkpoints("pretrain_scan"), tmp_path / "out", tmp_path)


def test_a_damaged_value_of_the_reference_does_not_matter(tmp_path):
  """Only what it looks like is read."""
  reference = _write(tmp_path / "ref", _WEIGHTS)
  database = stores.kvstore(reference / "3/items")
  key = "params.params.decoder.norm.scale/0"
  ts.KvStore.open(database).result().write(key, b"damaged" * 10).result()
  source = _write(tmp_path / "in", _WEIGHTS)
  target = _convert(source, tmp_path / "out", reference)
  assert stores.digests(target / "items") == stores.digests(source / "3/items")
