"""Sharded states, on simulated devices: see the target's XLA_FLAGS."""

import jax
import orbax.checkpoint as ocp
import pytest
from flax import nnx

from relayout.trainers.live.live_state import live_state
from relayout.trainers.live.tree import maxtext_step
from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager
from tests.support.small_models import (
  build,
  differences,
  shardings,
  spread,
  train,
  values,
)

SYNC = ocp.CheckpointManagerOptions(enable_async_checkpointing=False)


def _state(scan, devices, seed):
  """Returns a model and optimizer whose counts lie on one device."""
  model, opt = build(seed, "multi_steps", adapter=True, scan=scan)
  spread(model, devices)
  for path, variable in nnx.to_flat_state(
    nnx.state(opt, nnx.optimizer.OptState)
  ):
    if not {"count", "step", "gradient_step", "mini_step"} & {*map(str, path)}:
      value = variable.get_value()
      spread(nnx.Dict(variable=variable), devices)
      assert value.shape == variable.get_value().shape
  return model, opt


@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("devices", [4, 2])
def test_saved_on_four_devices_restored_on_some(tmp_path, devices, scan):
  assert jax.device_count() == 4
  model, opt = _state(scan, 4, seed=0)
  # One device's counts beside sharded moments: as trainers have them.
  assert len(opt.step.get_value().sharding.device_set) == 1
  train(model, opt, 2)
  manager = MaxTextLayoutCheckpointManager(str(tmp_path), SYNC)
  manager.save(2, model, opt)
  other, other_opt = _state(scan, devices, seed=1)
  before = shardings(other) | shardings(other_opt)
  assert manager.maybe_restore(other, other_opt)[0] == 2
  manager.close()
  assert shardings(other) | shardings(other_opt) == before
  assert not differences(values(model), values(other))
  want = train(model, opt, 1, 2)
  got = train(other, other_opt, 1, 2)
  assert got == pytest.approx(want, rel=1e-6)


def test_what_is_saved_lies_on_every_device():
  # Several hosts could not save a count that one of them has alone.
  model, opt = _state(True, 4, seed=0)
  step = maxtext_step(live_state(model, opt))
  arrays = jax.tree.leaves([item.tree for item in step.items])
  assert len(arrays) > 10
  assert {len(array.sharding.device_set) for array in arrays} == {4}
