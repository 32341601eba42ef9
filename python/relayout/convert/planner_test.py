"""Plans are plain data."""

import json

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.plan import Derived, Stored
from relayout.convert.planner import plan_step
from relayout.convert.source import read_step
from relayout.errors import LayoutError, OptionError, UnsupportedError
from relayout.metadata.checkpoint import find_checkpoint
from tests.support import golden, stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")


def _plan(path, options=_KEEP):
  step = find_checkpoint(path).steps[-1]
  return plan_step(read_step(step, params_only=options.params_only), options)


def _leaves(plan):
  """The leaves of MaxText's own item."""
  [item] = [item for item in plan.targets if item.name == "items"]
  return {leaf.name: leaf for leaf in item.leaves}


def test_rng_of_another_kind_is_left_out_with_the_reason():
  plan = _plan(golden.checkpoints("sft_scan"))
  reasons = {item.reason for item in plan.dropped if "rngs" in item.leaf.label}
  assert len(reasons) == 1
  assert "threefry2x32" in reasons.pop()
  assert not any(name.startswith("nnx_aux") for name in _leaves(plan))


def test_rng_that_maxtext_reads_is_kept():
  plan = _plan(golden.checkpoints("distill_scan_tmid"))
  rng = [name for name in _leaves(plan) if name.startswith("nnx_aux.model.")]
  assert len(rng) == 12
  assert not plan.dropped or all(
    "rngs" not in item.leaf.label for item in plan.dropped
  )


def test_a_schedule_count_is_always_there():
  for name in ("sft_scan", "rl_scan", "dpo_scan", "distill_scan_tmid"):
    leaf = _leaves(_plan(golden.checkpoints(name)))["opt_state.2.count"]
    assert leaf.spec is not None
    assert (leaf.spec.shape, leaf.spec.dtype) == ((), "int32")


def test_stacking_moves_axis_one_and_appends_for_vectors():
  leaves = _leaves(_plan(golden.checkpoints("sft_unscan"), _FLAT))
  kernel = leaves["params.params.decoder.layers.mlp.wi_0.kernel"]
  scale = leaves[
    "params.params.decoder.layers.pre_self_attention_layer_norm.scale"
  ]
  assert isinstance(kernel.origin, Stored)
  assert kernel.origin.verb == scale.origin.verb == "stacked"
  assert kernel.spec.shape == (64, 4, 128)
  assert kernel.spec.chunk_shape == (64, 1, 128)
  assert scale.spec.shape == (64, 4)


def test_the_stacked_axis_is_not_split_over_devices():
  source = golden.checkpoints("sft_unscan_sharded")
  kept = _leaves(_plan(source))
  stacked = _leaves(_plan(source, _FLAT))

  def split(leaves, layers):
    name = f"params.params.decoder.{layers}.self_attention.out.kernel"
    return json.loads(leaves[name].sharding)["partition_spec"]

  first, *rest = split(kept, "layers_0")
  assert any([first, *rest])
  assert split(stacked, "layers") == [first, None, *rest]


def test_target_leaves_are_stored_or_derived():
  plan = _plan(golden.checkpoints("sft_scan"))
  origins = {name: type(leaf.origin) for name, leaf in _leaves(plan).items()}
  assert origins["step"] is Derived
  assert origins["opt_state.1"] is Derived
  assert origins["opt_state.0.count"] is Stored


def test_adam_pax_becomes_a_flat_dict(tmp_path):
  weight = np.ones((2, 3), np.float32)
  stores.write_item(tmp_path / "4/model_params", {"decoder.w.value": weight})
  stores.write_item(
    tmp_path / "4/optimizer_state",
    {
      "step.value": np.uint32(4),
      "opt_state.1.count.value": np.int32(4),
      "opt_state.1.mu.decoder.w.value": weight,
      "opt_state.1.nu.decoder.w.value": weight,
    },
  )
  assert set(_leaves(_plan(tmp_path))) == {
    "params.params.decoder.w",
    "step",
    "opt_state.count",
    "opt_state.mu.params.decoder.w",
    "opt_state.nu.params.decoder.w",
  }


def test_an_optimizer_that_keeps_nothing_is_refused(tmp_path):
  weight = np.ones((2, 3), np.float32)
  stores.write_item(tmp_path / "4/model_params", {"decoder.w.value": weight})
  stores.write_item(
    tmp_path / "4/optimizer_state", {"step.value": np.uint32(4)}
  )
  with pytest.raises(LayoutError, match=r"no moments.*--params_only"):
    _plan(tmp_path)
  weights = _leaves(_plan(tmp_path, Options(params_only=True)))
  assert set(weights) == {"params.params.decoder.w"}


def test_layers_of_other_shapes_do_not_stack(tmp_path):
  for layer, width in enumerate((3, 4)):
    stores.write_item(
      tmp_path / "1/model_params",
      {f"decoder.layers_{layer}.mlp.wi.value": np.ones((2, width), np.float32)},
    )
  with pytest.raises(
    LayoutError, match=r"layers_1.*\[2, 4\]|layers_1.*\(2, 4\)"
  ):
    _plan(tmp_path, _FLAT)


def test_a_bias_that_is_no_weight_goes_where_maxtext_looks(tmp_path):
  name = "decoder.moe_layers.DeepSeekMoeBlock_0.MoeBlock_0.gate.bias"
  stores.write_item(
    tmp_path / "1/model_params",
    {
      f"{name}.value": np.ones(4, np.float32),
      "decoder.w.value": np.ones(4, np.float32),
    },
  )
  moment = np.ones(4, np.float32)
  stores.write_item(
    tmp_path / "1/optimizer_state",
    {
      "step.value": np.uint32(1),
      "opt_state.0.count.value": np.int32(1),
      "opt_state.0.mu.decoder.w.value": moment,
      "opt_state.0.nu.decoder.w.value": moment,
    },
  )
  assert f"nnx_aux.model.{name}" in _leaves(_plan(tmp_path))
  weights = _plan(tmp_path, Options(params_only=True))
  assert f"params.params.{name}" in _leaves(weights)


def test_zarr_versions_do_not_mix_in_one_item(tmp_path):
  stores.write_item(tmp_path / "1/model_params", {"w.value": np.ones(2)})
  stores.write_item(
    tmp_path / "1/optimizer_state",
    {
      "step.value": np.uint32(1),
      "opt_state.0.count.value": np.int32(1),
      "opt_state.0.mu.w.value": np.ones(2),
      "opt_state.0.nu.w.value": np.ones(2),
    },
    zarr_format=3,
  )
  with pytest.raises(UnsupportedError, match="zarr v2"):
    _plan(tmp_path)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_alpha_must_be_positive(alpha):
  with pytest.raises(OptionError, match="lora_alpha"):
    Options(lora_alpha=alpha).check()
