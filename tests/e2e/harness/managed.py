"""Runs Tunix's trainers under our checkpoint manager and watches them.

The trainers are those of `post_training`, and MaxText's program for
distillation; relayout's hooks put our manager in, as its own binaries do it.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from harness import compare, maxtext_run, post_training, tunix_source
from harness.tunix_source import Arrays, TrainState

_TEACHER_SEED = 5


@dataclasses.dataclass(frozen=True)
class Values:
  """All values of a trainer, by their paths."""

  model: Arrays
  optimizer: Arrays

  @property
  def state(self) -> TrainState:
    """The training state in it, without random number state."""
    state = tunix_source.train_state(self.model, self.optimizer)
    return dataclasses.replace(state, aux={})

  def digests(self) -> dict[str, str]:
    """Returns a text for each value, random number state included."""
    return {
      f"{kind}/{path}": compare.digest(array)
      for kind, arrays in (("model", self.model), ("opt", self.optimizer))
      for path, array in arrays.items()
    }


@dataclasses.dataclass
class Run:
  """What was seen of one run.

  Attributes:
    losses: Of each step, exactly as the train step returned them.
    after: The number of updates to all values then, for the start, the end
      and where it was asked for.
    saved: Step directories after the run.
  """

  losses: list[float] = dataclasses.field(default_factory=list)
  after: dict[int, Values] = dataclasses.field(default_factory=dict)
  saved: list[int] = dataclasses.field(default_factory=list)

  @property
  def first_step(self) -> int:
    """Updates done before the first step."""
    return min(self.after)


def train(
  kind: str,
  run_directory: pathlib.Path,
  flags: Sequence[str],
  *,
  steps: int,
  look_after: Sequence[int] = (),
) -> Run:
  """Trains under our manager.

  Args:
    kind: Key of `TRAINERS`.
    run_directory: The manager restores from the checkpoints in it.
    flags: More MaxText flags.
    steps: The budget: the run ends with this number of updates.
    look_after: Numbers of updates after which to take down all values.
  """
  run = Run()
  trainer = TRAINERS[kind]
  with _managed(distills=kind == "distillation"), _watch(run, look_after):
    trainer.train(run_directory, flags, steps=steps)
  checkpoints = run_directory / "checkpoints" / trainer.below
  run.saved = tunix_source.step_numbers(checkpoints)
  return run


@dataclasses.dataclass(frozen=True)
class Trainer:
  """A kind of trainer.

  Attributes:
    train: Runs it.
    below: Where in the run's checkpoints its manager looks.
    driven: How it is run here, for the table.
  """

  train: Any
  driven: str
  below: str = ""


def _distill(
  run_directory: pathlib.Path, flags: Sequence[str], *, steps: int
) -> None:
  """Runs MaxText's distillation, with a teacher that has other weights."""
  import jax
  from maxtext.configs import pyconfig
  from maxtext.trainers.post_train.distillation import train_distill

  # As its `main` does.
  jax.config.update("jax_default_prng_impl", "unsafe_rbg")
  flags = [*flags, f"steps={steps}", "save_checkpoint_on_completion=True"]
  student, teacher = (
    pyconfig.initialize(
      maxtext_run.argv(run_directory, [*flags, f"init_weights_seed={seed}"])
    )
    for seed in (0, _TEACHER_SEED)
  )
  with post_training.given_tokenizer(train_distill):
    train_distill.train_distill(student, teacher)


TRAINERS = {
  "SFT": Trainer(post_training.fine_tune, "MaxText's `train_sft`"),
  "DPO": Trainer(
    post_training.prefer, "MaxText's `train_dpo`, with ORPO's loss"
  ),
  "RL actor": Trainer(
    post_training.reinforce,
    "Tunix's `rl.trainer.Trainer`, with `train_rl`'s optimizer",
    below="actor",
  ),
  "distillation": Trainer(_distill, "MaxText's `train_distill`"),
}


@contextlib.contextmanager
def _managed(*, distills: bool) -> Iterator[None]:
  from relayout.trainers.maxtext.progress import Progress
  from relayout.trainers.maxtext.session import configured, our_manager, watched

  progress = Progress(ends_by_itself=not distills)
  with our_manager(distills=distills) as session, watched(progress):

    def read(config: Any) -> None:
      session.config = session.config or config

    with configured(read, "initialize_pydantic", "initialize"):
      yield


@contextlib.contextmanager
def _watch(run: Run, look_after: Sequence[int]) -> Iterator[None]:
  """Records into `run` what the trainer has and does."""
  from tunix.sft import inflight_throttler, peft_trainer

  throttler = inflight_throttler.InflightThrottler
  train, add = peft_trainer.PeftTrainer.train, throttler.add_computation
  seen: list[Any] = []

  def train_watched(trainer: Any, *args: Any, **kwargs: Any) -> Any:
    seen.append(trainer)
    run.after[trainer.train_steps] = _values(trainer)
    result = train(trainer, *args, **kwargs)
    run.after[trainer.train_steps] = _values(trainer)
    return result

  # A trainer hands the loss of each step to its throttler, before it counts it.
  def add_watched(self: Any, loss: Any) -> None:
    run.losses.append(float(loss))
    done = seen[-1].train_steps + 1
    if done in look_after:
      run.after[done] = _values(seen[-1])
    add(self, loss)

  with (
    mock.patch.object(peft_trainer.PeftTrainer, "train", train_watched),
    mock.patch.object(throttler, "add_computation", add_watched),
  ):
    yield


def _values(trainer: Any) -> Values:
  model = getattr(trainer.model, "student_model", trainer.model)
  return Values(
    model=_copied(maxtext_run.live_values(model)),
    optimizer=_copied(maxtext_run.live_values(trainer.optimizer)),
  )


def _copied(arrays: Arrays) -> Arrays:
  """Copies values: the trainer gives its buffers to the next step."""
  return {path: np.array(array) for path, array in arrays.items()}
