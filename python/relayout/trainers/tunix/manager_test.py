"""The manager saves MaxText's layout and puts everything back."""

import types
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from absl import logging
from flax import nnx
from tunix.sft import checkpoint_manager

from relayout.errors import LayoutError
from relayout.metadata.item import open_item
from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager
from tests.support.small_models import (
  OPTIMIZERS,
  OTHER_OPTIMIZERS,
  build,
  differences,
  train,
  values,
)

SYNC = ocp.CheckpointManagerOptions(enable_async_checkpointing=False)


def _manager(root, options=SYNC, **kwargs):
  return MaxTextLayoutCheckpointManager(str(root), options, **kwargs)


def _save(root, step, model, optimizer=None, **kwargs):
  manager = _manager(root)
  try:
    return manager.save(step, model, optimizer, **kwargs)
  finally:
    manager.close()


def _restore(root, model, optimizer=None, *, manager=None, **kwargs):
  manager = manager or _manager(root)
  try:
    return manager.maybe_restore(model, optimizer, **kwargs)
  finally:
    manager.close()


def _state(optimizer) -> dict[str, np.ndarray]:
  """Returns an optimizer's arrays, without the sign of accumulated zeros."""
  return {
    name: value + 0 if "acc_grads" in name else value
    for name, value in values(optimizer).items()
  }


def _names(item: Path) -> dict[str, str]:
  return {
    leaf.name: "None"
    if leaf.spec is None
    else f"{leaf.spec.dtype}{list(leaf.spec.shape)}"
    for leaf in open_item(item).leaves
  }


@pytest.mark.parametrize(
  ("optimizer", "adapter", "scan"),
  [
    ("plain", False, True),
    ("clip", False, False),
    ("clip", False, True),
    ("multi_steps", True, False),
    ("multi_steps_2", True, True),
    ("inject", True, True),
    ("multi_steps_inject", True, False),
  ],
)
def test_resumes_exactly(tmp_path, optimizer, adapter, scan):
  model, opt = build(0, optimizer, scan=scan, adapter=adapter)
  train(model, opt, 4)
  assert _save(tmp_path, 4, model, opt)
  resumed, resumed_opt = build(1, optimizer, scan=scan, adapter=adapter)
  cold_losses = train(*build(1, optimizer, scan=scan, adapter=adapter), 2, 4)
  step, _ = _restore(tmp_path, resumed, resumed_opt)
  every = 2 if optimizer in ("multi_steps_2", "multi_steps_inject") else 1
  assert step == 4 // every
  assert not differences(values(model), values(resumed))
  assert not differences(_state(opt), _state(resumed_opt))
  losses = train(model, opt, 2, 4)
  assert train(resumed, resumed_opt, 2, 4) == losses
  assert losses != cold_losses


def test_resumes_exactly_with_layers_at_axis_0(tmp_path):
  config = types.SimpleNamespace(scan_layers=True, param_scan_axis=0)
  model, opt = build(0, "inject", scan=True, axis=0)
  train(model, opt, 2)
  manager = _manager(tmp_path, config=config)
  manager.save(2, model, opt)
  manager.close()
  resumed, resumed_opt = build(1, "inject", scan=True, axis=0)
  manager = _manager(tmp_path, config=config)
  step, metadata = _restore(tmp_path, resumed, resumed_opt, manager=manager)
  assert (step, metadata["param_scan_axis"]) == (2, 0)
  assert not differences(values(model), values(resumed))
  assert not differences(values(opt), values(resumed_opt))


@pytest.mark.parametrize("optimizer", sorted(OTHER_OPTIMIZERS))
def test_other_optimizers_resume_exactly(tmp_path, optimizer, monkeypatch):
  lines = []
  monkeypatch.setattr(
    logging, "warning", lambda text, *args: lines.append(text % args)
  )
  model, opt = build(0, optimizer)
  train(model, opt, 2)
  _save(tmp_path, 2, model, opt)
  assert "start its optimizer afresh" in lines[0]
  names = _names(tmp_path / "2/items")
  assert names["step"] == "int32[]"
  assert not [name for name in names if name.startswith("opt_state")]
  resumed, resumed_opt = build(1, optimizer)
  assert _restore(tmp_path, resumed, resumed_opt)[0] == 2
  assert not differences(values(model), values(resumed))
  assert not differences(values(opt), values(resumed_opt))
  assert train(resumed, resumed_opt, 2, 2) == train(model, opt, 2, 2)


@pytest.mark.parametrize(
  ("stored", "live"), [("sgd_momentum", "clip"), ("clip", "sgd_momentum")]
)
def test_the_state_of_another_optimizer_is_refused(tmp_path, stored, live):
  model, opt = build(0, stored)
  _save(tmp_path, 2, model, opt)
  other, other_opt = build(1, live)
  before = values(other) | values(other_opt)
  with pytest.raises(LayoutError, match=r"opt_state\..*not stored"):
    _restore(tmp_path, other, other_opt)
  assert not differences(before, values(other) | values(other_opt))


def test_another_optimizer_of_other_layers_is_refused(tmp_path):
  model, opt = build(0, "sgd_momentum")
  _save(tmp_path, 2, model, opt)
  other, other_opt = build(1, "sgd_momentum", scan=True)
  manager = _manager(tmp_path, layer_pattern="flat")
  with pytest.raises(LayoutError, match="Restore without an optimizer"):
    _restore(tmp_path, other, other_opt, manager=manager)


def test_zeros_of_the_size_of_the_model_are_not_stored(tmp_path):
  model, opt = build(0, "multi_steps_2")
  train(model, opt, 2)
  _save(tmp_path, 1, model, opt)
  train(model, opt, 1, 2)
  _save(tmp_path, 2, model, opt)
  done, within = (
    [name for name in _names(tmp_path / step / "relayout") if "acc_gr" in name]
    for step in ("1", "2")
  )
  assert not done
  assert len(within) == 6


def test_a_constant_rate_stays_where_none_is_stored(tmp_path):
  model, opt = build(0, "plain")
  train(model, opt, 3)
  _save(tmp_path, 3, model, opt)
  other, other_opt = build(1, "inject")
  rates = other_opt.opt_state.hyperparams
  rates["learning_rate"].set_value(jnp.float32(0.25))
  _restore(tmp_path, other, other_opt)
  state = values(other_opt)
  assert state["opt_state.hyperparams.learning_rate"] == 0.25
  assert state["opt_state.count"] == 3
  assert state["opt_state.hyperparams_states.learning_rate.count"] == 3
  np.testing.assert_array_equal(
    state["opt_state.inner_state.1.0.nu.decoder.layers_1.dense.kernel"],
    values(opt)["opt_state.0.nu.decoder.layers_1.dense.kernel"],
  )


def test_what_is_recomputed_is_neither_saved_nor_missed(tmp_path):
  model, opt = build(0)
  model.decoder.cached = nnx.Cache(jnp.zeros((2, 2)))
  model.decoder.seen = nnx.Intermediate(jnp.ones(3))
  _save(tmp_path / "ours", 1, model, opt)
  names = " ".join(_names(tmp_path / "ours/1/items"))
  assert "cached" not in names
  assert "seen" not in names
  old = checkpoint_manager.CheckpointManager(str(tmp_path / "old"), SYNC)
  old.save(1, model, opt)
  old.close()
  for run in ("ours", "old"):
    other, other_opt = build(1)
    other.decoder.cached = nnx.Cache(jnp.full((2, 2), 7.0))
    other.decoder.seen = nnx.Intermediate(jnp.zeros(3))
    _restore(tmp_path / run, other, other_opt)
    assert differences(values(model), values(other)) == [
      "decoder.cached",
      "decoder.seen",
    ]
    assert (other.decoder.cached.get_value() == 7).all()


def test_a_variable_that_is_no_weight_may_be_new(tmp_path):
  model, opt = build(0)
  _save(tmp_path, 1, model, opt)
  other, other_opt = build(1)
  other.decoder.acceptance = nnx.BatchStat(jnp.full(2, 5.0))
  _restore(tmp_path, other, other_opt)
  assert (other.decoder.acceptance.get_value() == 5).all()
  assert differences(values(model), values(other)) == ["decoder.acceptance"]


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_items_do_not_depend_on_wrappers_or_adapter(tmp_path, optimizer):
  plain, plain_opt = build(0, "plain", scan=True)
  _save(tmp_path / "plain", 1, plain, plain_opt)
  model, opt = build(0, optimizer, scan=True, adapter=True)
  _save(tmp_path / "wrapped", 1, model, opt)
  wrapped = _names(tmp_path / "wrapped/1/items")
  assert wrapped == _names(tmp_path / "plain/1/items")
  assert wrapped["opt_state.1"] == "None"
  assert wrapped["step"] == "int32[]"
  assert "params.params.decoder.layers.dense.kernel" in wrapped
  assert wrapped["nnx_aux.model.decoder.table"] == "float32[3]"
  assert not [name for name in wrapped if "rngs" in name or "base" in name]


def test_saves_without_optimizer_and_config(tmp_path):
  model, _ = build(0)
  assert _save(tmp_path, 3, model)
  names = _names(tmp_path / "3/items")
  assert not [name for name in names if name.startswith("opt_state")]
  other, opt = build(1)
  before = values(opt)
  assert _restore(tmp_path, other, opt) == (3, {"scan_layers": False})
  assert not differences(values(model), values(other))
  assert not differences(before, values(opt))


def test_no_checkpoint_is_step_0(tmp_path):
  model, opt = build(0)
  before = values(model)
  assert _restore(tmp_path, model, opt) == (0, {})
  assert not differences(before, values(model))


def test_disabled_without_a_directory():
  manager = MaxTextLayoutCheckpointManager(None)
  model, opt = build(0)
  assert manager.save(1, model, opt) is False
  assert manager.maybe_restore(model, opt) == (0, {})
  assert manager.latest_step() is None
  manager.close()


def test_reads_tunix_layout_and_goes_on_in_maxtexts(tmp_path):
  model, opt = build(0, "multi_steps", adapter=True)
  train(model, opt, 3)
  old = checkpoint_manager.CheckpointManager(str(tmp_path), SYNC)
  old.save(3, model, opt, custom_metadata={"role": "actor"})
  old.close()
  assert (tmp_path / "3/model_params").is_dir()
  resumed, resumed_opt = build(1, "multi_steps", adapter=True)
  manager = _manager(tmp_path)
  assert manager.maybe_restore(resumed, resumed_opt) == (3, {"role": "actor"})
  assert not differences(values(model), values(resumed))
  assert not differences(_state(opt), _state(resumed_opt))
  train(resumed, resumed_opt, 1, 3)
  assert manager.save(4, resumed, resumed_opt)
  manager.close()
  assert sorted(p.name for p in (tmp_path / "4").iterdir() if p.is_dir()) == [
    "items",
    "relayout",
  ]
  again, again_opt = build(2, "multi_steps", adapter=True)
  assert _restore(tmp_path, again, again_opt)[0] == 4
  assert not differences(values(resumed), values(again))
  assert not differences(_state(resumed_opt), _state(again_opt))


@pytest.mark.parametrize("stored_scan", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_stacks_and_unstacks_on_the_way(tmp_path, stored_scan, axis):
  config = type("Config", (), {})()
  config.scan_layers, config.param_scan_axis = stored_scan, axis
  config.model_name = "default"
  model, opt = build(0, scan=stored_scan, axis=axis)
  train(model, opt, 2)
  manager = _manager(tmp_path, config=config)
  manager.save(2, model, opt)
  manager.close()
  other, other_opt = build(1, scan=not stored_scan, axis=axis)
  config.scan_layers = not stored_scan
  manager = _manager(tmp_path, config=config, layer_pattern="flat")
  assert _restore(tmp_path, other, other_opt, manager=manager)[0] == 2
  scanned, plain = (model, other) if stored_scan else (other, model)
  stack = values(scanned)["decoder.layers.dense.kernel"]
  for i in range(3):
    layer = values(plain)[f"decoder.layers_{i}.dense.kernel"]
    np.testing.assert_array_equal(np.take(stack, i, axis), layer)
  scanned_opt, plain_opt = (opt, other_opt) if stored_scan else (other_opt, opt)
  stack = values(scanned_opt)["opt_state.1.0.nu.decoder.layers.dense.bias"]
  layer = values(plain_opt)["opt_state.1.0.nu.decoder.layers_1.dense.bias"]
  np.testing.assert_array_equal(np.take(stack, 1, min(axis, 1)), layer)
