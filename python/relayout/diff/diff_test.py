"""Whole comparisons: layouts, scan modes, every kind of difference."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from relayout.diff import Declared, Status, diff, render_table
from relayout.errors import CorruptCheckpointError, OptionError
from tests.support import golden, models, stores

_KERNEL = "decoder.layers_3.mlp.kernel"


def _differences(report):
  [step] = report.steps
  return step.differences


def _only(report):
  [found] = _differences(report)
  return found


@pytest.mark.parametrize("name", [*golden.TUNIX, *golden.MAXTEXT])
def test_a_checkpoint_equals_itself(name):
  path = golden.checkpoints(name)
  report = diff(path, path)
  assert report.is_equal, render_table(report)
  assert all(step.num_bytes for step in report.steps)


@pytest.mark.parametrize(
  ("pattern", "num_layers", "scanned"),
  [
    ("flat", 11, models.scanned_flat),
    ("gemma3", 14, models.scanned_gemma3),
    ("gemma4", 15, models.scanned_gemma4),
  ],
)
@pytest.mark.parametrize("limit", [1, 1 << 28])
def test_a_scanned_and_an_unscanned_model_are_equal(
  pattern, num_layers, scanned, limit, tmp_path
):
  a = models.write_tunix(
    tmp_path / "a" / "4", models.unscanned(num_layers), adapter="base"
  )
  b = models.write_maxtext(tmp_path / "b" / "3", scanned(num_layers))
  report = diff(
    a, b, declared=Declared(layer_pattern=pattern), memory_limit=limit
  )
  assert report.is_equal, render_table(report)
  [step] = report.steps
  assert step.by_role()["weight"][Status.EQUAL] == 1 + 4 * num_layers
  assert step.by_role()["moment"][Status.EQUAL] == 2 * (1 + 4 * num_layers)


def test_the_wrong_pattern_does_not_make_models_equal(tmp_path):
  a = models.write_tunix(tmp_path / "a" / "4", models.unscanned(12))
  b = models.write_maxtext(tmp_path / "b" / "3", models.scanned_gemma3(12))
  assert (
    not diff(a, b, declared=Declared(layer_pattern="cycle:6"))
    .steps[0]
    .by_role()["weight"]
    .get(Status.VALUE)
  )
  flat = diff(a, b, declared=Declared(layer_pattern="flat"))
  assert not flat.is_equal


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 0)])
def test_other_scan_axes(axes, tmp_path):
  first, second = axes
  a = models.write_maxtext(
    tmp_path / "a" / "3",
    models.scanned_flat(5, first),
    custom={"param_scan_axis": first, "layer_pattern": "flat"},
  )
  b = models.write_maxtext(tmp_path / "b" / "3", models.scanned_flat(5, second))
  report = diff(a, b, declared=Declared(b_scan_axis=second))
  assert report.is_equal, render_table(report)
  assert "layer_pattern of the step's metadata in A" in render_table(report)


def test_a_grouping_that_nothing_tells(tmp_path):
  a = models.write_tunix(tmp_path / "a" / "4", models.unscanned(4))
  b = models.write_maxtext(tmp_path / "b" / "3", models.scanned_flat(4))
  with pytest.raises(OptionError, match="Name the model with --model_name"):
    diff(a, b)
  report = diff(a, b, declared=Declared(model_name="qwen3-0.6b"))
  assert report.is_equal, render_table(report)
  with pytest.raises(OptionError, match="Say which is right"):
    diff(a, b, declared=Declared(model_name="gemma3-4b", layer_pattern="flat"))


def test_one_element_of_one_layer_differs(tmp_path):
  weights = models.unscanned(4)
  a = models.write_tunix(tmp_path / "a" / "4", weights)
  scanned = models.scanned_flat(4)
  scanned["decoder.layers.mlp.kernel"][2, 3, 1] += 8
  b = models.write_maxtext(tmp_path / "b" / "3", scanned)
  # The moments are made from the weights.
  found = {
    leaf.key.slot: leaf
    for leaf in _differences(
      diff(a, b, declared=Declared(layer_pattern="flat"))
    )
  }
  assert found.keys() == {"", "mu", "nu"}
  leaf = found[""]
  assert leaf.status is Status.VALUE
  assert leaf.a.name == f"model_params/{_KERNEL}.value"
  assert leaf.b.name == (
    "items/params.params.decoder.layers.mlp.kernel[:, 3, :]"
  )
  assert leaf.a.hash != leaf.b.hash
  assert leaf.mismatch.count == 1
  assert leaf.mismatch.largest.difference == 8
  assert leaf.mismatch.largest.index == (2, 1)
  value = weights[_KERNEL][2, 1]
  assert leaf.mismatch.largest_relative.difference == pytest.approx(
    8 / (value + 8)
  )
  assert leaf.mismatch.largest.a == str(value)


def test_two_data_types(tmp_path):
  weights = models.unscanned(1)
  a = models.write_maxtext(tmp_path / "a" / "3", weights, updates=None)
  cast = {
    name: values.astype(ml_dtypes.bfloat16) for name, values in weights.items()
  }
  b = models.write_maxtext(tmp_path / "b" / "3", cast, updates=None)
  found = _differences(diff(a, b))
  assert {leaf.status for leaf in found} == {Status.DTYPE}
  assert all(leaf.detail == "float32 / bfloat16" for leaf in found)
  by_path = {leaf.key.path: leaf for leaf in found}
  exact = by_path["token_embedder", "embedding"]
  assert exact.mismatch is None
  rounded = by_path["decoder", "layers_0", "mlp", "experts"]
  assert rounded.mismatch is not None
  assert rounded.mismatch.largest.difference == 1


def test_what_only_one_side_has(tmp_path):
  weights = models.unscanned(2)
  a = models.write_maxtext(tmp_path / "a" / "3", weights, updates=None)
  del weights["decoder.layers_1.gate"]
  weights["extra.bias"] = np.zeros(3, np.float32)
  b = models.write_maxtext(tmp_path / "b" / "3", weights, updates=None)
  found = {leaf.status: leaf for leaf in _differences(diff(a, b))}
  assert found[Status.ONLY_A].key.path[-1] == "gate"
  assert found[Status.ONLY_B].b.name == "items/params.params.extra.bias"
  text = render_table(diff(a, b))
  assert "A  items/params.params.decoder.layers_1.gate  [] float32" in text


def test_a_shape_differs(tmp_path):
  weights = models.unscanned(1)
  a = models.write_maxtext(tmp_path / "a" / "3", weights, updates=None)
  weights["token_embedder.embedding"] = np.ones((6, 4), np.float32)
  b = models.write_maxtext(tmp_path / "b" / "3", weights, updates=None)
  found = _only(diff(a, b))
  assert found.status is Status.SHAPE
  assert (found.a.shape, found.b.shape) == ((5, 4), (6, 4))


def test_another_step(tmp_path):
  weights = models.unscanned(1)
  a = models.write_tunix(tmp_path / "a" / "4", weights)
  b = models.write_maxtext(tmp_path / "b" / "4", weights, updates=5)
  found = {leaf.key.role: leaf for leaf in _differences(diff(a, b))}
  assert found.keys() == {"step", "count", "schedule count"}
  assert found["step"].mismatch.largest.difference == 1
  assert ("updates", "4", "5") in diff(a, b).steps[0].facts


def test_stored_in_other_ways(tmp_path):
  weights = models.unscanned(2)
  a = models.write_maxtext(tmp_path / "a" / "3", weights)
  chunks = {f"params.params.{_KERNEL.replace('3', '1')}": (3, 2)}
  b = models.write_maxtext(
    tmp_path / "b" / "3", weights, zarr_format=3, chunks=chunks
  )
  report = diff(a, b)
  assert report.is_equal, render_table(report)
  assert ("stored as", "ocdbt, zarr v2", "ocdbt, zarr v3") in (
    report.steps[0].facts
  )


def test_hosts_that_never_merged(tmp_path):
  weights = {"decoder.norm.scale": np.arange(40, dtype=np.float32)}
  a = models.write_maxtext(tmp_path / "a" / "3", weights, updates=None)
  b = models.write_maxtext(tmp_path / "b" / "3", weights, updates=None)
  stores.remove_database(b / "items")
  stores.write_split_item(
    b / "items",
    {f"params.params.{name}": x for name, x in weights.items()},
    chunks={"params.params.decoder.norm.scale": (7,)},
  )
  report = diff(a, b)
  assert report.is_equal, render_table(report)


def test_without_values(tmp_path):
  weights = models.unscanned(1)
  a = models.write_maxtext(tmp_path / "a" / "3", weights)
  weights["token_embedder.embedding"] = np.zeros((5, 4), np.float32)
  b = models.write_maxtext(tmp_path / "b" / "3", weights)
  report = diff(a, b, values=False)
  assert report.is_equal
  assert "values not compared" in render_table(report)
  assert not diff(a, b).is_equal


def _run(root, numbers):
  """Writes a run whose step N holds N updates."""
  for number in numbers:
    weights = {"decoder.norm.scale": np.full(3, number, np.float32)}
    models.write_tunix(root / str(number), weights, updates=number)
  return root


def test_runs_are_compared_step_by_step(tmp_path):
  a = _run(tmp_path / "a", (2, 4, 6))
  b = _run(tmp_path / "b", (2, 4))
  report = diff(a, b)
  assert [step.a[-1] for step in report.steps] == ["2", "4"]
  assert not any(step.differences for step in report.steps)
  assert not report.is_equal
  assert [text.split(":")[0] for text in report.unpaired] == [str(a / "6")]


def test_a_step_is_compared_with_its_counterpart(tmp_path):
  a = _run(tmp_path / "a", (2, 4, 6))
  report = diff(a, a / "4")
  assert report.is_equal
  assert report.steps[0].a == str(a / "4")
  assert diff(a, a, step=6).steps[0].b == str(a / "6")
  with pytest.raises(OptionError, match="--step=5"):
    diff(a, a, step=5)
  other = _run(tmp_path / "b", (3,))
  with pytest.raises(OptionError, match="belong together"):
    diff(a, other / "3")


def test_what_a_conversion_set_aside_counts_as_there(tmp_path):
  """An unscanned model has rng state that a scanned one has no place for."""
  weights = models.unscanned(2)
  rng = {"decoder.layers_0.rngs.params.count": np.array(7, np.uint32)}
  a = models.write_tunix(tmp_path / "a" / "4", weights | rng, updates=None)
  b = models.write_maxtext(
    tmp_path / "b" / "3", models.scanned_flat(2), updates=None
  )
  declared = Declared(layer_pattern="flat")
  [step] = diff(a, b, declared=declared).steps
  assert step.by_role()["rng"] == {Status.NO_PLACE: 1}
  name = "tunix_unscanned.model_params.decoder.layers_0.rngs.params.count.value"
  models.write_item(b / "relayout", {name: np.array(7, np.uint32)})
  [step] = diff(a, b, declared=declared).steps
  assert step.by_role()["rng"] == {Status.EQUAL: 1}
  c = models.write_maxtext(
    tmp_path / "c" / "3", models.scanned_flat(2), updates=None
  )
  models.write_item(c / "relayout", {name: np.array(8, np.uint32)})
  assert _only(diff(a, c, declared=declared)).status is Status.VALUE


def test_items_of_no_layout_are_compared_by_name(tmp_path):
  path = golden.checkpoints("sft_scan") / "4" / "optimizer_state"
  report = diff(path, path)
  assert report.is_equal
  assert [*report.steps[0].by_role()] == ["other"]
  other = golden.checkpoints("sft_scan") / "2" / "optimizer_state"
  assert not diff(path, other).is_equal


def test_damage_is_an_error(tmp_path):
  a = models.write_maxtext(tmp_path / "a" / "3", models.unscanned(1))
  stores.overwrite_key(a / "items", "opt_state.0.count/0", b"no zstd")
  with pytest.raises(CorruptCheckpointError, match=r"opt_state\.0\.count"):
    diff(a, a)


def test_json_is_json(tmp_path):
  weights = models.unscanned(1)
  a = models.write_maxtext(tmp_path / "a" / "3", weights)
  weights["token_embedder.embedding"] = np.full((5, 4), np.inf, np.float32)
  b = models.write_maxtext(tmp_path / "b" / "3", weights)
  text = json.dumps(diff(a, b).to_json(), allow_nan=False)
  [step] = json.loads(text)["steps"]
  assert step["counts"]["weight"] == {"equal": 4, "value": 1}
  [leaf] = [
    x for x in step["leaves"] if x["status"] == "value" and not x["slot"]
  ]
  assert leaf["path"] == "token_embedder.embedding"
  assert leaf["num_different"] == 20
  assert leaf["largest"]["difference"] == "inf"
  assert len(leaf["a"]["hash"]) == 32
  [same] = [x for x in step["leaves"] if x["path"].endswith("gate")][:1]
  assert same["a"]["hash"] == same["b"]["hash"]


def test_progress_is_told(tmp_path):
  a = models.write_maxtext(tmp_path / "a" / "3", models.unscanned(1))
  told: list[str] = []
  diff(a, a, progress=told.append)
  assert told[-1].startswith("compared 100 %")


def test_importing_is_cheap():
  """Neither NumPy, TensorStore nor JAX is imported before anything is read."""
  heavy = {"jax", "numpy", "orbax", "tensorstore"}
  code = f"import relayout.diff, sys; assert not {heavy} & set(sys.modules)"
  subprocess.run(
    [sys.executable, "-c", code],
    check=True,
    env={"PYTHONPATH": ":".join(sys.path)},
  )
