"""Runs the released MaxText and watches it; for forked children.

MaxText's own functions do all the work. `pretrain` puts thin wrappers around
two of them that record what passes and change nothing.
"""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, get_args
from unittest import mock

import numpy as np

from harness import tunix_source

_COMMON = [
  "override_model_config=True",
  "hardware=cpu",
  "skip_jax_distributed_system=True",
  "per_device_batch_size=1",
  "max_target_length=32",
  "attention=dot_product",
  "packing=false",
  "dataset_type=synthetic",
  "learning_rate=1e-2",
  "eval_interval=-1",
  "enable_goodput_recording=False",
  "monitor_goodput=False",
  "log_config=False",
  "async_checkpointing=False",
  "checkpoint_period=2",
]
_SIZES = [
  "base_emb_dim=64",
  "base_mlp_dim=128",
  "base_num_query_heads=4",
  "base_num_kv_heads=2",
  "head_dim=16",
  "vocab_size=256",
]
# The models of the golden checkpoints.
MODELS = {
  "qwen3": ["model_name=qwen3-0.6b", "base_num_decoder_layers=4", *_SIZES],
  "gemma3": [
    "model_name=gemma3-4b",
    "base_num_decoder_layers=8",
    "use_multimodal=False",
    *_SIZES,
  ],
  "qwen3moe": [
    "model_name=qwen3-30b-a3b",
    "base_num_decoder_layers=3",
    "num_experts=4",
    "num_experts_per_tok=2",
    "base_moe_mlp_dim=32",
    "sparse_matmul=False",
    "megablox=False",
    *_SIZES,
  ],
}


@dataclasses.dataclass
class Run:
  """What was seen of one pre-training run.

  Attributes:
    restored: The live state right after restoring, before the first step.
    first_step: The number of the first step that the loop made.
    losses: Step number to loss, exactly as the train step returned it.
    saved: Step directory to the `step` leaf in it, after the run; -1 where
      there is none.
  """

  restored: tunix_source.TrainState | None = None
  first_step: int | None = None
  losses: dict[int, float] = dataclasses.field(default_factory=dict)
  saved: dict[int, int] = dataclasses.field(default_factory=dict)


def pretrain(
  run_directory: pathlib.Path, flags: Sequence[str], *, steps: int
) -> Run:
  """Runs pre-training whose checkpoints are in `run_directory/checkpoints`.

  Args:
    run_directory: MaxText resumes from the latest checkpoint in it.
    flags: More MaxText flags.
    steps: The budget: the run ends before the step with this number.
  """
  from maxtext.trainers.pre_train import train

  run = Run()
  with watch(run):
    train.main(argv(run_directory, [*flags, f"steps={steps}"]))
  checkpoints = run_directory / "checkpoints"
  for number in tunix_source.step_numbers(checkpoints):
    arrays = tunix_source.read_item(checkpoints / str(number) / "items")
    run.saved[number] = int(arrays.get("step", -1))
  return run


@dataclasses.dataclass
class Reference:
  """What MaxText makes of given weights when no checkpoint is involved.

  Attributes:
    loss: Of the first step.
    aux: A fresh model's random number state.
  """

  loss: float
  aux: tunix_source.Arrays


def reference(
  weights: tunix_source.Arrays, flags: Sequence[str], scratch: pathlib.Path
) -> Reference:
  """Puts `weights` into a fresh model and runs MaxText's first train step.

  The batch is the one that every run with these flags sees: synthetic data
  repeats one batch.

  Args:
    weights: Every weight of the model.
    flags: More MaxText flags.
    scratch: MaxText wants an output directory.
  """
  from maxtext.trainers.pre_train import train

  aux: tunix_source.Arrays = {}
  losses: list[float] = []

  def set_up_with_weights(*args: Any, **kwargs: Any) -> Any:
    result = set_up(*args, **kwargs)
    train_state = result[-1]
    aux.update(live_state(train_state).aux)
    _put_weights(train_state.model, weights)
    return result

  def one_iteration(*args: Any, **kwargs: Any) -> Any:
    metrics = iteration(*args, **kwargs)
    losses.append(float(metrics["scalar"]["learning/loss"]))
    return metrics

  set_up = train.train_utils.setup_train_loop
  iteration = train.training_loop_iteration
  with (
    mock.patch.object(
      train.train_utils, "setup_train_loop", set_up_with_weights
    ),
    mock.patch.object(train, "training_loop_iteration", one_iteration),
  ):
    off = ["enable_checkpointing=False", "steps=1"]
    train.main(argv(scratch, [*flags, *off]))
  (loss,) = losses
  return Reference(loss=loss, aux=aux)


def decoder_blocks() -> dict[str, str]:
  """Returns `decoder_block` of every model name that MaxText accepts.

  For `-Instruct` it takes the configuration of the name without.
  """
  from maxtext.configs import types

  blocks = {
    name: config["decoder_block"] for name, config in _model_configs().items()
  }
  names = {*blocks, *get_args(types.ModelName)}
  plain = {name: name.replace("-Instruct", "") for name in names}
  return {name: blocks[plain[name]] for name in names if plain[name] in blocks}


def model_config(model: str) -> dict[str, Any]:
  """Returns the configuration of a model name.

  That of `-Instruct` is the one of the name without.
  """
  return _model_configs()[model.replace("-Instruct", "")]


def configure(flags: Sequence[str], scratch: pathlib.Path) -> Any:
  """Returns MaxText's configuration for an abstract model.

  Raises:
    ValueError: If MaxText refuses `flags`.
  """
  from maxtext.configs import pyconfig

  off = [
    "enable_checkpointing=False",
    "sparse_matmul=False",
    "megablox=False",
  ]
  return pyconfig.initialize(argv(scratch, [*off, *flags]))


def unscanned(config: Any) -> Any:
  """Returns `config` without scanned layers, changed as MaxText does it."""
  from maxtext.configs import pyconfig

  changed = config._pydantic_config.model_copy(update={"scan_layers": False})
  return pyconfig.HyperParameters(changed)


def abstract_model(config: Any) -> Any:
  """Returns MaxText's model with shapes in place of arrays."""
  from maxtext.utils import maxtext_utils, model_creation_utils

  mesh = maxtext_utils.get_mesh_from_config(config, None)
  return model_creation_utils.create_nnx_abstract_model(config, mesh)[1]


@functools.cache
def _model_configs() -> dict[str, dict[str, Any]]:
  import maxtext
  import yaml

  models = pathlib.Path(maxtext.__file__).parent / "configs" / "models"
  return {
    path.stem: yaml.safe_load(path.read_text()) for path in models.glob("*.yml")
  }


def argv(
  run_directory: pathlib.Path, flags: Sequence[str], config: str = "base.yml"
) -> list[str]:
  """Returns a MaxText command line; `config` is below MaxText's `configs`."""
  import maxtext

  configs = pathlib.Path(maxtext.__file__).parent / "configs"
  return [
    "train",
    str(configs / config),
    f"run_name={run_directory.name}",
    f"base_output_directory={run_directory.parent}",
    *_COMMON,
    *flags,
  ]


@contextlib.contextmanager
def watch(run: Run) -> Iterator[None]:
  """Records into `run` what MaxText restores and trains."""
  from maxtext.trainers.pre_train import train

  set_up = train.train_utils.setup_train_loop
  iteration = train.training_loop_iteration

  def watched_set_up(*args: Any, **kwargs: Any) -> Any:
    result = set_up(*args, **kwargs)
    run.restored = live_state(result[-1])
    return result

  def watched_iteration(state: Any, python_vars: Any, fixed: Any) -> Any:
    step = python_vars["step"]
    if run.first_step is None:
      run.first_step = int(step)
    metrics = iteration(state, python_vars, fixed)
    run.losses[int(step)] = float(metrics["scalar"]["learning/loss"])
    return metrics

  with (
    mock.patch.object(train.train_utils, "setup_train_loop", watched_set_up),
    mock.patch.object(train, "training_loop_iteration", watched_iteration),
  ):
    yield


def live_state(train_state: Any) -> tunix_source.TrainState:
  """Returns the values of MaxText's live state, every leaf of it."""
  from flax import nnx

  weights, aux = {}, {}
  for path, variable in nnx.to_flat_state(nnx.state(train_state.model)):
    kind = weights if issubclass(variable.type, nnx.Param) else aux
    kind[_join(path)] = _to_numpy(variable.get_value())
  optimizer = live_values(train_state.optimizer)
  # AdamW is a chain; adam_pax keeps its state at the top and no schedule.
  is_chain = "opt_state.0.count" in optimizer
  adam = "opt_state.0" if is_chain else "opt_state"
  count = int(optimizer.pop(f"{adam}.count"))
  moments = {}
  for kind in ("mu", "nu"):
    prefix = f"{adam}.{kind}."
    moments[kind] = {
      name.removeprefix(prefix): optimizer.pop(name)
      for name in list(optimizer)
      if name.startswith(prefix)
    }
  state = tunix_source.TrainState(
    weights=weights,
    mu=moments["mu"],
    nu=moments["nu"],
    count=count,
    schedule_count=int(optimizer.pop("opt_state.2.count"))
    if is_chain
    else count,
    step=int(optimizer.pop("step")),
    aux=aux,
  )
  assert not optimizer, f"unknown optimizer leaves {sorted(optimizer)}"
  return state


def live_values(node: Any) -> tunix_source.Arrays:
  """Returns the values of every variable of a live module or optimizer."""
  from flax import nnx

  return {
    _join(path): _to_numpy(variable.get_value())
    for path, variable in nnx.to_flat_state(nnx.state(node))
  }


def _join(path: Sequence[Any]) -> str:
  return ".".join(map(str, path))


def _to_numpy(array: Any) -> np.ndarray:
  import jax

  if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
    array = jax.random.key_data(array)
  return np.asarray(array)


def _put_weights(model: Any, weights: tunix_source.Arrays) -> None:
  """Replaces every parameter of `model`; the two sets must be equal."""
  import jax
  from flax import nnx

  params = dict(nnx.to_flat_state(nnx.state(model, nnx.Param)))
  names = {_join(path) for path in params}
  assert names == weights.keys(), names ^ weights.keys()
  for path, variable in params.items():
    old, new = variable.get_value(), weights[_join(path)]
    assert (new.shape, new.dtype) == (old.shape, old.dtype), path
    params[path] = variable.replace(jax.device_put(new, old.sharding))
  nnx.update(model, nnx.from_flat_state(params))
