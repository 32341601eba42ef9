"""Reading Tunix's layout."""

import numpy as np
import pytest

from relayout.errors import LayoutError
from relayout.layouts import tunix
from relayout.layouts.state import Role, State, StateKey
from relayout.metadata.item import open_item
from tests.support import golden, stores

_W = np.zeros((2, 3), np.float32)


def _read(tmp_path, model, optimizer=None) -> State:
  """Writes items of these arrays and reads them."""
  stores.write_item(tmp_path / "model_params", model)
  model_item = open_item(tmp_path / "model_params")
  if optimizer is None:
    return tunix.read_state(model_item, None)
  stores.write_item(tmp_path / "optimizer_state", optimizer)
  return tunix.read_state(model_item, open_item(tmp_path / "optimizer_state"))


def _weights(state: State) -> set[str]:
  return {".".join(path) for path in state.weight_paths}


def _adamw(path: str, shape=(2, 3)) -> dict[str, np.ndarray]:
  moment = np.zeros(shape, np.float32)
  return {
    "step.value": np.uint32(3),
    "opt_state.0.count.value": np.int32(3),
    f"opt_state.0.mu.{path}.value": moment,
    f"opt_state.0.nu.{path}.value": moment,
    "opt_state.2.count.value": np.int32(3),
  }


def test_value_goes_only_where_it_is_the_last_key(tmp_path):
  state = _read(tmp_path, {"decoder.attention.value.kernel.value": _W})
  assert _weights(state) == {"decoder.attention.value.kernel"}


def test_a_weight_called_value_survives(tmp_path):
  state = _read(tmp_path, {"decoder.attention.value.value": _W})
  assert _weights(state) == {"decoder.attention.value"}


def test_adapter_level_goes_at_the_root(tmp_path):
  state = _read(tmp_path, {"base.decoder.w.value": _W, "base.out.value": _W})
  assert state.adapter == "base"
  assert _weights(state) == {"decoder.w", "out"}


@pytest.mark.parametrize("prefix", ["", "base."])
def test_a_real_module_called_base_survives(tmp_path, prefix):
  state = _read(tmp_path, {f"{prefix}decoder.base.w.value": _W})
  assert _weights(state) == {"decoder.base.w"}


def test_base_beside_other_modules_is_no_adapter_level(tmp_path):
  state = _read(tmp_path, {"base.w.value": _W, "head.w.value": _W})
  assert state.adapter == ""
  assert _weights(state) == {"base.w", "head.w"}


def test_adapter_level_goes_from_the_moments_too(tmp_path):
  state = _read(
    tmp_path, {"base.decoder.base.w.value": _W}, _adamw("base.decoder.base.w")
  )
  moments = {(key.slot, key.path) for key, _ in state.with_role(Role.MOMENT)}
  assert moments == {
    ("mu", ("decoder", "base", "w")),
    ("nu", ("decoder", "base", "w")),
  }


def test_a_moment_without_its_weight_is_an_error(tmp_path):
  with pytest.raises(LayoutError, match=r"mu\.decoder\.x.*no weight"):
    _read(tmp_path, {"decoder.w.value": _W}, _adamw("decoder.x"))


def test_a_moment_of_another_shape_names_both(tmp_path):
  with pytest.raises(LayoutError, match=r"\(3, 2\).*\(2, 3\)"):
    _read(tmp_path, {"decoder.w.value": _W}, _adamw("decoder.w", (3, 2)))


@pytest.mark.parametrize("slot", ["mu", "nu"])
def test_a_moment_without_its_twin_is_an_error(tmp_path, slot):
  optimizer = _adamw("decoder.w") | _adamw("decoder.v")
  del optimizer[f"opt_state.0.{slot}.decoder.v.value"]
  model = {"decoder.w.value": _W, "decoder.v.value": _W}
  with pytest.raises(
    LayoutError, match=rf"no {slot} of decoder\.v.*incomplete"
  ):
    _read(tmp_path, model, optimizer)


def test_unknown_kinds_are_left_out_and_said(tmp_path):
  state = _read(
    tmp_path,
    {"decoder.w.value": _W, "decoder.table.value": np.zeros(3, np.int32)},
  )
  [dropped] = state.dropped
  assert dropped.leaf.leaf.name == "decoder.table.value"
  assert "unknown kind" in dropped.reason


def test_a_routing_bias_is_no_weight(tmp_path):
  name = "decoder.moe_layers.DeepSeekMoeBlock_0.MoeBlock_0.gate.bias"
  state = _read(tmp_path, {f"{name}.value": _W, "decoder.w.value": _W})
  assert StateKey(Role.AUXILIARY, tuple(name.split("."))) in state.leaves


@pytest.mark.parametrize(
  ("name", "step", "updates", "schedule", "wrappers", "adapter"),
  [
    ("sft_scan", "4", 4, None, ("chain",), ""),
    ("sft_scan_noclip", "4", 4, None, (), ""),
    ("sft_scan_stock0", "0", 0, None, ("chain",), ""),
    ("dpo_scan", "4", 4, None, ("MultiSteps", "chain"), "base"),
    ("dpo_scan_ga2", "4", 4, None, ("MultiSteps", "chain"), "base"),
    ("rl_scan", "actor/4", 4, 4, ("inject_hyperparams", "chain"), "base"),
    ("distill_scan_tmid", "4", 4, 4, ("inject_hyperparams", "chain"), ""),
  ],
)
def test_what_tunix_wrote(name, step, updates, schedule, wrappers, adapter):
  directory = golden.checkpoints(name) / step
  state = tunix.read_state(
    open_item(directory / "model_params"),
    open_item(directory / "optimizer_state"),
  )
  assert state.optimizer == "adamw"
  assert state.step is not None
  assert state.step.value == updates
  assert (state.schedule_count and state.schedule_count.value) == schedule
  assert state.wrappers == wrappers
  assert state.adapter == adapter
  moments = {key.path for key, _ in state.with_role(Role.MOMENT)}
  assert moments == set(state.weight_paths)
