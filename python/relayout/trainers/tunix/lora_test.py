"""Adapters alone: everything their optimizer needs, and nothing else."""

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx

from relayout.errors import LayoutError
from relayout.metadata.item import open_item
from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager
from tests.support.small_models import WIDTH, Model, differences, values

SYNC = ocp.CheckpointManagerOptions(enable_async_checkpointing=False)
RANK = 2


def _build(seed):
  """Returns a model with adapters beside its kernels, as qwix names them."""
  model = Model(seed)
  key = jax.random.key(seed)
  for i in range(3):
    dense = getattr(model.decoder, f"layers_{i}").dense
    a = jax.random.normal(key, (WIDTH, RANK))
    dense.kernel_lora_a = nnx.LoRAParam(a)
    dense.kernel_lora_b = nnx.LoRAParam(jnp.ones((RANK, WIDTH)))
  tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.1))
  return model, nnx.Optimizer(model, tx, wrt=nnx.LoRAParam)


def _train(model, opt):
  def loss(m):
    dense = m.decoder.layers_1.dense
    a, b = dense.kernel_lora_a.get_value(), dense.kernel_lora_b.get_value()
    return jnp.sum((a @ b) ** 2)

  only = nnx.DiffState(0, nnx.LoRAParam)
  opt.update(model, nnx.grad(loss, argnums=only)(model))


@pytest.fixture
def manager(tmp_path):
  manager = MaxTextLayoutCheckpointManager(str(tmp_path), SYNC)
  yield manager
  manager.close()


def test_saves_and_restores_adapters_alone(manager, tmp_path):
  model, opt = _build(0)
  _train(model, opt)
  manager.save(1, model, opt, save_only_lora_params=True)
  names = [leaf.name for leaf in open_item(tmp_path / "1/items").leaves]
  weights = [name for name in names if name.startswith("params.")]
  assert len(weights) == 6
  assert all("_lora_" in name for name in weights)
  assert len([name for name in names if ".mu." in name]) == 6
  assert not (tmp_path / "1/relayout/dense").exists()
  other, other_opt = _build(1)
  base = {n: v for n, v in values(other).items() if "_lora_" not in n}
  assert (
    manager.maybe_restore(other, other_opt, restore_only_lora_params=True)[0]
    == 1
  )
  got = values(other)
  want = {n: v for n, v in values(model).items() if "_lora_" in n}
  assert not differences(want, {n: v for n, v in got.items() if n in want})
  assert not differences(base, {n: v for n, v in got.items() if n in base})
  assert not differences(values(opt), values(other_opt))


def test_adapters_alone_are_no_model(manager):
  model, opt = _build(0)
  manager.save(1, model, opt, save_only_lora_params=True)
  other, other_opt = _build(1)
  with pytest.raises(LayoutError, match="restore_only_lora_params=True"):
    manager.maybe_restore(other, other_opt)


def test_every_adapter_must_be_stored(manager):
  model, _ = _build(0)
  del model.decoder.layers_2.dense.kernel_lora_a
  del model.decoder.layers_2.dense.kernel_lora_b
  manager.save(1, model, None, save_only_lora_params=True)
  other, _ = _build(1)
  before = values(other)
  with pytest.raises(LayoutError) as error:
    manager.maybe_restore(other, restore_only_lora_params=True)
  assert "decoder.layers_2.dense.kernel_lora_a.value: the model has" in str(
    error.value
  )
  assert not differences(before, values(other))


def test_adapters_of_a_whole_checkpoint(manager):
  model, opt = _build(0)
  manager.save(1, model, opt)
  other, other_opt = _build(1)
  manager.maybe_restore(other, other_opt, restore_only_lora_params=True)
  name = "decoder.layers_0.dense.kernel_lora_a"
  assert (values(model)[name] == values(other)[name]).all()
  assert not differences(values(opt), values(other_opt))
