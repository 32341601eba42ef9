"""Runs the released Tunix over MaxText's models and watches it.

For forked children. Three live trainers, each of which restores through the
released checkpoint manager when its run directory has a checkpoint: MaxText's
supervised fine-tuning, and two whose model stands in the adapter: preference
optimization with MaxText's program, and Tunix's trainer for reinforcement
learning with an optimizer of the kind that MaxText gives it.
"""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np

from harness import maxtext_run, tunix_source
from harness.tunix_source import Arrays, TrainState

_PAD = 0
_NUM_PAIRS = 2
_LENGTH = 8
_ORPO = (
  'dpo={"algo":"orpo","orpo_lambda":0.1,"dpo_label_smoothing":0.0,'
  '"dpo_beta":0.1,"max_prompt_length":16}'
)
_DEFAULT_KEYS = "threefry2x32"
"""JAX's own default for the implementation of random keys."""


@dataclasses.dataclass
class Run:
  """What was seen of one post-training run.

  Attributes:
    first_step: The trainer's counter before the first step.
    model: Values of the model then, by path.
    optimizer: Values of the optimizer then, by path.
    losses: Of each step, exactly as the train step returned them.
    saved: Step directories after the run.
  """

  first_step: int
  model: Arrays
  optimizer: Arrays
  losses: list[float]
  saved: list[int]

  @property
  def state(self) -> TrainState:
    """The training state in it."""
    return tunix_source.train_state(self.model, self.optimizer)


def fine_tune(
  run_directory: pathlib.Path,
  flags: Sequence[str],
  *,
  steps: int,
  start: TrainState | None = None,
) -> Run:
  """Runs MaxText's supervised fine-tuning.

  Args:
    run_directory: The manager restores from the checkpoints in it.
    flags: More MaxText flags.
    steps: The budget: the run ends with this number of updates.
    start: A state to put into the trainer, where there is no checkpoint.
  """
  from maxtext.trainers.post_train.sft import train_sft

  config = _config(run_directory, "sft.yml", [*flags, f"steps={steps}"])
  trainer, mesh = train_sft.setup_trainer_state(config)
  checkpoints = run_directory / "checkpoints"
  return _watch(
    trainer,
    lambda: train_sft.train_model(config, trainer, mesh),
    checkpoints,
    start,
  )


def prefer(
  run_directory: pathlib.Path,
  flags: Sequence[str],
  *,
  steps: int,
  start: TrainState | None = None,
) -> Run:
  """Runs MaxText's preference optimization; arguments as of `fine_tune`.

  With the algorithm ORPO, whose loss depends on the restored weights alone:
  the reference model of DPO is a copy from before they are restored.
  """
  from maxtext.trainers.post_train.dpo import train_dpo

  flags = [*flags, _ORPO, f"steps={steps}"]
  config = _config(run_directory, "dpo.yml", flags)
  with given_pairs():
    trainer, mesh = train_dpo.setup_trainer_state(config)
  checkpoints = run_directory / "checkpoints"
  return _watch(
    trainer,
    lambda: train_dpo.train_model(config, trainer, mesh),
    checkpoints,
    start,
  )


def reinforce(
  run_directory: pathlib.Path,
  flags: Sequence[str],
  *,
  steps: int,
  start: TrainState | None = None,
) -> Run:
  """Runs Tunix's trainer of an actor; arguments as of `fine_tune`.

  Its loss is Tunix's default, for no rollout feeds it.
  """
  import jax
  from flax.core import spmd
  from maxtext.utils import model_creation_utils
  from orbax import checkpoint as ocp
  from tunix.rl import trainer as rl_trainer
  from tunix.sft import peft_trainer

  config = _config(run_directory, "sft.yml", [*flags, f"steps={steps}"])
  model, mesh = model_creation_utils.from_pretrained(
    config, wrap_with_tunix_adapter=True, tokenizer_pad_id=_PAD
  )
  checkpoints = run_directory / "checkpoints" / "actor"
  with jax.set_mesh(mesh), spmd.logical_axis_rules(config.logical_axis_rules):
    trainer = rl_trainer.Trainer(
      model,
      _injected_optimizer(config),
      peft_trainer.TrainingConfig(
        eval_every_n_steps=steps + 1,
        max_steps=steps,
        checkpoint_root_directory=str(checkpoints),
        checkpointing_options=ocp.CheckpointManagerOptions(
          save_interval_steps=config.checkpoint_period,
          enable_async_checkpointing=False,
        ),
      ),
      lambda: {"global_step": 0, "role": "actor"},
    )
    trainer.with_gen_model_input_fn(_model_input)
    batch = peft_trainer.TrainingInput(**_tokens())
    return _watch(
      trainer,
      lambda: trainer.train(itertools.repeat(batch), cache_nnx_graph=False),
      checkpoints,
      start,
    )


@contextlib.contextmanager
def one_batch() -> Iterator[None]:
  """Gives all of MaxText's programs the first batch that one of them loads.

  Synthetic data depends on the implementation of random numbers, and
  pre-training uses another one than fine-tuning.
  """
  import jax
  from maxtext.common import data_loader

  load = data_loader.DataLoader.load_next_batch
  first: dict[str, np.ndarray] = {}

  def load_first(loader: Any, *args: Any, **kwargs: Any) -> Any:
    if not first:
      batch = load(loader, *args, **kwargs)
      first.update({name: np.asarray(a) for name, a in batch.items()})
    return jax.device_put(first, loader.input_data_shardings)

  with mock.patch.object(data_loader.DataLoader, "load_next_batch", load_first):
    yield


@contextlib.contextmanager
def given_pairs() -> Iterator[None]:
  """Feeds MaxText's preference optimization, which then needs no tokenizer."""
  from maxtext.trainers.post_train.dpo import train_dpo

  with (
    given_tokenizer(train_dpo),
    mock.patch.object(train_dpo.hooks, "DPODataHooks", _PairHooks),
  ):
    yield


def given_tokenizer(program: Any) -> contextlib.AbstractContextManager[Any]:
  """Gives a program of MaxText, which asks for the padding, a tokenizer."""
  return mock.patch.object(
    program.tokenizer,
    "build_tokenizer",
    return_value=types.SimpleNamespace(pad_id=_PAD),
  )


class _PairHooks:
  """Feeds one batch of preference pairs, in place of MaxText's data."""

  train_data_iterator = ()
  eval_data_iterator = None

  def __init__(self, *_: Any):
    ids = iter(_ids(3))
    mask = np.ones((_NUM_PAIRS, _LENGTH), np.int32)
    self.train_batch: Mapping[str, np.ndarray] = {
      f"{part}_{kind}": values
      for part in ("prompt", "chosen", "rejected")
      for kind, values in (("ids", next(ids)), ("mask", mask))
    }

  def load_next_train_batch(self, _: Any) -> Mapping[str, np.ndarray]:
    return self.train_batch


def _ids(number: int) -> np.ndarray:
  rng = np.random.default_rng(0)
  shape = (number, _NUM_PAIRS, _LENGTH)
  return rng.integers(_PAD + 1, 256, shape, np.int32)


def _tokens() -> dict[str, np.ndarray]:
  (ids,) = _ids(1)
  return {"input_tokens": ids, "input_mask": np.ones_like(ids)}


def _model_input(batch: Any) -> dict[str, Any]:
  from tunix.sft import utils

  return {
    "input_tokens": batch.input_tokens,
    "input_mask": batch.input_mask,
    "positions": utils.build_positions_from_mask(batch.input_mask),
    "attention_mask": utils.make_causal_attn_mask(batch.input_mask),
  }


def _injected_optimizer(config: Any) -> Any:
  """Returns an optimizer built as `get_optimizer` of MaxText's train_rl."""
  import optax

  def make(learning_rate: Any) -> Any:
    return optax.chain(
      optax.clip_by_global_norm(config.gradient_clipping_threshold),
      optax.adamw(learning_rate, weight_decay=config.adam_weight_decay),
    )

  schedule = optax.schedules.warmup_cosine_decay_schedule(
    0.0, config.learning_rate, 2, config.steps
  )
  return optax.inject_hyperparams(make)(learning_rate=schedule)


def _config(
  run_directory: pathlib.Path, name: str, flags: Sequence[str]
) -> Any:
  import jax
  from maxtext.configs import pyconfig, types

  # Synthetic data hashes it; the released program can't and swallows the error.
  types.MaxTextConfig.__hash__ = object.__hash__
  # What a process of its own would find; pre-training sets another one.
  keys = os.environ.get("JAX_DEFAULT_PRNG_IMPL", _DEFAULT_KEYS)
  jax.config.update("jax_default_prng_impl", keys)
  argv = maxtext_run.argv(run_directory, flags, f"post_train/{name}")
  return pyconfig.initialize_pydantic(argv)


def _watch(
  trainer: Any,
  train: Callable[[], Any],
  checkpoints: pathlib.Path,
  start: TrainState | None,
) -> Run:
  """Runs `train` and records what the trainer had before it and did."""
  from tunix.sft import inflight_throttler

  if start is not None:
    _put(trainer, start)
  run = Run(
    first_step=trainer.train_steps,
    model=maxtext_run.live_values(trainer.model),
    optimizer=maxtext_run.live_values(trainer.optimizer),
    losses=[],
    saved=[],
  )
  # The trainer hands the loss of each step to its throttler.
  throttler = inflight_throttler.InflightThrottler
  add = throttler.add_computation

  def add_watched(self: Any, loss: Any) -> None:
    run.losses.append(float(loss))
    add(self, loss)

  with mock.patch.object(throttler, "add_computation", add_watched):
    train()
  run.saved = tunix_source.step_numbers(checkpoints)
  return run


def _put(trainer: Any, state: TrainState) -> None:
  """Puts weights, moments and counts into a trainer, past its manager."""
  from flax import nnx

  weights = {f"base.{path}": a for path, a in state.weights.items()}
  weights |= state.weights
  _replace(trainer.model, nnx.Param, weights.__getitem__)
  old = maxtext_run.live_values(trainer.optimizer)
  _replace(
    trainer.optimizer,
    nnx.optimizer.OptState,
    lambda path: _optimizer_value(path, state, old[path]),
  )


def _optimizer_value(
  path: str, state: TrainState, old: np.ndarray
) -> np.ndarray:
  """Returns what a trainer that did all the updates has at `path`."""
  for slot, moments in (("mu", state.mu), ("nu", state.nu)):
    _, found, below = path.partition(f".{slot}.")
    if found:
      return moments[below.removeprefix("base.")]
  if path.endswith((".2.count", ".learning_rate.count")):
    return np.asarray(state.schedule_count, old.dtype)
  if path.endswith((".count", "step")) and not path.endswith("mini_step"):
    return np.asarray(state.step, old.dtype)
  return old


def _replace(
  node: Any, kind: Any, value_of: Callable[[str], np.ndarray]
) -> None:
  import jax
  from flax import nnx

  variables = dict(nnx.to_flat_state(nnx.state(node, kind)))
  for path, variable in variables.items():
    name = ".".join(map(str, path))
    old, new = variable.get_value(), value_of(name)
    assert (new.shape, new.dtype) == (old.shape, old.dtype), name
    variables[path] = variable.replace(jax.device_put(new, old.sharding))
  nnx.update(node, nnx.from_flat_state(variables))
