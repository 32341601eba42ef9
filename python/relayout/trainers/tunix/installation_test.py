"""The manager in Tunix's own trainer: runs go on as if they had not ended."""

import os
import threading

import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from tunix.sft import checkpoint_manager, peft_trainer

from relayout.errors import LayoutError
from relayout.trainers.tunix.installation import install
from tests.support.small_models import (
  OPTIMIZERS,
  WIDTH,
  Adapter,
  Model,
  build,
  differences,
  values,
)

SAVE_EACH = ocp.CheckpointManagerOptions(save_interval_steps=1)


def _data(first=0, num=64):
  for step in range(first, first + num):
    yield {"x": jnp.full((2, WIDTH), 0.1 * (step + 1), jnp.float32)}


def _trainer(seed, steps, *, optimizer="clip", root=None, accumulate=None):
  model = Adapter(Model(seed, scan=True))
  losses = []
  trainer = peft_trainer.PeftTrainer(
    model,
    OPTIMIZERS[optimizer](),
    peft_trainer.TrainingConfig(
      eval_every_n_steps=100,
      max_steps=steps,
      gradient_accumulation_steps=accumulate,
      checkpoint_root_directory=root,
      checkpointing_options=SAVE_EACH,
    ),
  )
  trainer.with_loss_fn(lambda m, x: jnp.sum((m(x) - 1.0) ** 2))
  log = trainer._log_metrics

  def record(loss, step=None, additional_metrics=None):
    losses.append(float(loss))
    log(loss, step, additional_metrics)

  trainer._log_metrics = record
  return trainer, losses


@pytest.mark.parametrize(
  ("optimizer", "accumulate"), [("clip", None), ("inject", None), ("clip", 2)]
)
def test_resumed_equals_uninterrupted_and_not_a_cold_start(
  tmp_path, optimizer, accumulate
):
  whole, whole_losses = _trainer(
    0, 4, optimizer=optimizer, accumulate=accumulate
  )
  install(whole, str(tmp_path / "whole"))
  whole.train(_data())
  first, _ = _trainer(0, 2, optimizer=optimizer, accumulate=accumulate)
  install(first, str(tmp_path / "run"))
  first.train(_data())
  second, losses = _trainer(1, 4, optimizer=optimizer, accumulate=accumulate)
  install(second, str(tmp_path / "run"))
  assert second.train_steps == 2
  assert second.iter_steps == 2 * (accumulate or 1)
  second.train(_data())
  cold, cold_losses = _trainer(1, 4, optimizer=optimizer, accumulate=accumulate)
  install(cold, str(tmp_path / "cold"))
  cold.train(_data())
  assert losses == whole_losses[2:]
  assert losses != cold_losses[2:]
  assert not differences(values(whole.model), values(second.model))
  assert not differences(values(whole.optimizer), values(second.optimizer))
  assert {"2", "4"} <= {*os.listdir(tmp_path / "run")}


def test_the_replaced_manager_leaves_no_thread(tmp_path, monkeypatch):
  before = set(threading.enumerate())
  trainer, _ = _trainer(0, 2, root=str(tmp_path / "old"))
  replaced = trainer.checkpoint_manager
  closed = []
  close = replaced.close
  monkeypatch.setattr(replaced, "close", lambda: closed.append(close()))
  manager = install(trainer, str(tmp_path / "run"))
  assert trainer.checkpoint_manager is manager is not replaced
  assert len(closed) == 1
  trainer.train(_data())
  assert (
    not {thread for thread in threading.enumerate() if not thread.daemon}
    - before
  )
  assert os.listdir(tmp_path / "old") == []


def test_a_run_that_stock_tunix_began_goes_on(tmp_path):
  stock, _ = _trainer(0, 2, root=str(tmp_path / "run"))
  stock.train(_data())
  assert isinstance(
    stock.checkpoint_manager, checkpoint_manager.CheckpointManager
  )
  assert (tmp_path / "run/2/model_params").is_dir()
  trainer, _ = _trainer(1, 3)
  install(trainer, str(tmp_path / "run"))
  assert trainer.train_steps == 2
  assert not differences(values(stock.model), values(trainer.model))
  trainer.train(_data())
  assert (tmp_path / "run/3/items").is_dir()


def test_an_empty_directory_leaves_the_counters(tmp_path):
  stock, _ = _trainer(0, 2, root=str(tmp_path / "run"))
  stock.train(_data())
  resumed, _ = _trainer(1, 3, root=str(tmp_path / "run"))
  install(resumed, str(tmp_path / "other"))
  assert resumed.train_steps == 2


def test_what_does_not_fit_leaves_the_trainer_alone(tmp_path):
  first, _ = _trainer(0, 1)
  install(first, str(tmp_path / "run"))
  first.train(_data())
  model, _ = build(1, scan=True)
  model.decoder.layers.dense.bias = nnx.Param(jnp.zeros((5, 3)))
  other = peft_trainer.PeftTrainer(
    model,
    optax.adamw(0.1),
    peft_trainer.TrainingConfig(eval_every_n_steps=100, max_steps=2),
  )
  kept = other.checkpoint_manager
  before = set(threading.enumerate())
  with pytest.raises(LayoutError, match=r"the model has \[5, 3\]"):
    install(other, str(tmp_path / "run"))
  assert other.checkpoint_manager is kept
  assert other.train_steps == 0
  assert not {t for t in threading.enumerate() if not t.daemon} - before
