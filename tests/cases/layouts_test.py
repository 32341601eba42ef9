"""Section A and G of the cases: names of layers, and what is no layer."""

from pathlib import Path

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import golden, stores, value_coded

_FLAT = Options(scan_layers="true", layer_pattern="flat")


def _items(report):
  [step] = report.to_json()["steps"]
  return stores.read_item(Path(step["target"], "items"))


@pytest.mark.parametrize("spelling", ["layers_{}", "layers.{}"])
@pytest.mark.parametrize("layout", ["maxtext", "tunix"])
def test_a14_both_spellings_of_a_layer_give_one_tree(
  spelling, layout, tmp_path
):
  layers = [np.full((2, 3), i, np.float32) for i in range(3)]
  weights = {
    f"decoder.{spelling.format(i)}.mlp.w": v for i, v in enumerate(layers)
  }
  for item, arrays in value_coded.STORED[layout](weights, None).items():
    stores.write_item(tmp_path / "in/4" / item, arrays)
  found = _items(convert(tmp_path / "in", tmp_path / "out", _FLAT))
  assert found.keys() == {"params.params.decoder.layers.mlp.w"}
  np.testing.assert_array_equal(*found.values(), np.stack(layers, 1))


def test_a14_layers_as_a_list_of_orbax_give_the_same_tree(tmp_path):
  """`layers/0`: keys of a list are numbers without a name."""
  layers = [np.full((2, 3), i, np.float32) for i in range(3)]
  names = [f"params.params.decoder.layers.{i}.w" for i in range(3)]
  stores.write_item(
    tmp_path / "in/4/items", dict(zip(names, layers, strict=True))
  )
  back = Options(scan_layers="false", layer_pattern="flat")
  there = convert(tmp_path / "in", tmp_path / "there", _FLAT)
  [step] = there.to_json()["steps"]
  found = _items(convert(Path(step["target"]), tmp_path / "back", back))
  assert found.keys() == {
    f"params.params.decoder.layers_{i}.w" for i in range(3)
  }


@pytest.mark.parametrize("updates", [None, 4])
def test_g17_a_whole_state_and_weights_alone_give_the_same_weights(
  updates, tmp_path
):
  model = value_coded.MODELS["flat"]
  for item, arrays in value_coded.tunix(model.unscanned(), updates).items():
    stores.write_item(tmp_path / "in/4" / item, arrays)
  options = Options(params_only=True, scan_layers="true", layer_pattern="flat")
  report = convert(tmp_path / "in", tmp_path / "out", options)
  found = _items(report)
  [expected] = value_coded.maxtext(model.scanned(1), None).values()
  assert found.keys() == expected.keys()
  for name, values in expected.items():
    np.testing.assert_array_equal(found[name], values)
  notes = " ".join(report.to_json()["steps"][0]["notes"])
  assert ("optimizer_state is left out" in notes) is (updates is not None)


@pytest.mark.parametrize("has_norms", [False, True])
def test_g18_every_leaf_goes_somewhere_or_is_said_to_be_dropped(
  has_norms, tmp_path
):
  names = ["self_attention.query.kernel", "self_attention.out.kernel"]
  if has_norms:
    names += [
      "self_attention.query_norm.scale",
      "self_attention.key_norm.scale",
    ]
  weights = {
    f"decoder.layers_{i}.{name}": np.full((2, 3), i, np.float32)
    for i in range(2)
    for name in names
  }
  [(item, arrays)] = value_coded.tunix(weights, None).items()
  stores.write_item(tmp_path / "in/4" / item, arrays)
  options = Options(
    scan_layers="true", layer_pattern="flat", drop=("*out.kernel",)
  )
  [step] = convert(tmp_path / "in", tmp_path / "out", options).to_json()[
    "steps"
  ]
  used = {label for leaf in step["leaves"] for label in leaf["from"]}
  dropped = {label for labels in step["dropped"].values() for label in labels}
  assert used | dropped == {f"{item}/{name}" for name in arrays}
  assert not used & dropped
  assert dropped == {
    f"{item}/decoder.layers_{i}.self_attention.out.kernel.value"
    for i in range(2)
  }


@pytest.mark.parametrize("has_mtp", [False, True])
@pytest.mark.parametrize("source", [None, 1])
def test_g21_a_prediction_layer_beside_the_stacks_is_kept(
  has_mtp, source, tmp_path
):
  model = value_coded.MODELS["deepseek"]
  mtp = {}
  if has_mtp:
    mtp = {"mtp_block.mtp_layer_1.projection.kernel": np.ones((2, 3), "<f4")}
  weights = model.unscanned() if source is None else model.scanned(source)
  [arrays] = value_coded.maxtext(weights | mtp, None).values()
  stores.write_item(tmp_path / "in/4/items", arrays)
  options = Options(
    scan_layers="true" if source is None else "false",
    model_name="DeepSeek3-671B",
  )
  found = _items(convert(tmp_path / "in", tmp_path / "out", options))
  wanted = model.scanned(1) if source is None else model.unscanned()
  [expected] = value_coded.maxtext(wanted | mtp, None).values()
  assert found.keys() == expected.keys()
  for name, values in expected.items():
    np.testing.assert_array_equal(found[name], values)


def test_a3_every_step_below_actor_and_a_second_run_does_nothing(tmp_path):
  source = golden.checkpoints("rl_scan")
  planned = convert(source, tmp_path / "out", Options(), dry_run=True)
  assert [step.status for step in planned.steps] == ["planned"] * 2
  first = convert(source, tmp_path / "out", Options())
  assert [step.status for step in first.steps] == ["converted"] * 2
  before = golden.tree_digest(tmp_path / "out")
  second = convert(source, tmp_path / "out", Options())
  assert [step.status for step in second.steps] == ["skipped"] * 2
  assert golden.tree_digest(tmp_path / "out") == before
