"""The cases of post-training from a converted pre-training checkpoint."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from harness import (
  compare,
  converter,
  maxtext_run,
  maxtext_source,
  post_training,
  tunix_source,
)
from harness.cases import (
  FOUR_DEVICES,
  QWEN3_TO_SCANNED,
  Case,
  copy_golden,
  file_digests,
  swap_moments,
)

_NUM_STEPS = 3


@dataclasses.dataclass(frozen=True)
class PostTrained:
  """What came out of `PostTrain`.

  Attributes:
    want: Digests of the pre-training state; without rng unless it is kept.
    got: Digests of the trainer's live state after restoring, likewise.
    want_step: Updates that pre-training did.
    converted: Step directories that the converter wrote, in order.
    first_step: Where the trainer started.
    counters: The integers in the optimizer's live state, by path.
    gradients: Largest absolute value of an accumulated gradient.
    rng_kept: Whether the live rng state is what the target has.
    num_keys: Of the live rng state.
    num_different_keys: Of these.
    want_losses: Of the next steps, of a run that took nothing from the target.
    losses: Of the trainer's.
    saved: Step directories after the run.
    source_kept: Whether the source's files are what they were.
  """

  want: dict[str, str]
  got: dict[str, str]
  want_step: int
  converted: list[int]
  first_step: int
  counters: dict[str, int]
  gradients: float
  rng_kept: bool
  num_keys: int
  num_different_keys: int
  want_losses: list[float]
  losses: list[float]
  saved: list[int]
  source_kept: bool


@dataclasses.dataclass(frozen=True)
class PostTrain(Case):
  """A post-training program goes on from a pre-training checkpoint.

  Attributes:
    train: Of `post_training`.
    below: Where in the run's checkpoints the trainer looks.
    counters: What the wrappers' counters must be, by path.
  """

  train: Callable[..., post_training.Run] = post_training.fine_tune
  below: str = ""
  counters: dict[str, int] = dataclasses.field(default_factory=dict)

  def run(self, directory: pathlib.Path) -> PostTrained:
    source = copy_golden(self, directory)
    files = file_digests(source)
    want = maxtext_source.read(source / self.step)
    if self.stack:
      want = tunix_source.stacked(want)
    steps = want.step + _NUM_STEPS
    target = directory / "run" / "checkpoints" / self.below
    with post_training.one_batch():
      want_losses = self.next_losses(want, directory, steps)
      converter.convert(source, target, *self.convert, to="tunix")
      converted = tunix_source.step_numbers(target)
      self.change(tunix_source.latest_step(target))
      aux = tunix_source.read(tunix_source.latest_step(target)).aux
      run = self.train(directory / "run", self.flags, steps=steps)
    return PostTrained(
      want=self.comparable(want),
      got=self.comparable(run.state),
      want_step=want.step,
      converted=converted,
      first_step=run.first_step,
      counters={
        path: int(a)
        for path, a in run.optimizer.items()
        if a.ndim == 0 and a.dtype.kind in "iu"
      },
      gradients=max(
        (
          float(np.abs(a).max())
          for path, a in run.optimizer.items()
          if ".acc_grads." in path
        ),
        default=0.0,
      ),
      rng_kept=_digests(aux) == _digests(run.state.aux),
      num_keys=len(_keys(run.state.aux)),
      num_different_keys=len(set(_keys(run.state.aux))),
      want_losses=want_losses,
      losses=run.losses,
      saved=run.saved,
      source_kept=file_digests(source) == files,
    )

  def comparable(self, state: tunix_source.TrainState) -> dict[str, str]:
    """Returns digests of what the conversion must not change."""
    if not self.rng:
      state = dataclasses.replace(state, aux={})
    return compare.digests(state)

  def next_losses(
    self, want: tunix_source.TrainState, directory: pathlib.Path, steps: int
  ) -> list[float]:
    """Returns what the program's next losses must be.

    Those of a trainer that never saw a checkpoint and got the source's values
    one by one.
    """
    # It counts from 0; the budget, which sets the learning rate, is the same.
    run = self.train(
      directory / "reference", self.flags, steps=steps, start=want
    )
    return run.losses[:_NUM_STEPS]

  def change(self, step: pathlib.Path) -> None:
    """Does nothing: a hook for cases that damage the target."""


@dataclasses.dataclass(frozen=True)
class FineTune(PostTrain):
  """As `PostTrain`; the losses are pre-training's own.

  MaxText's fine-tuning has the loss function and the optimizer of pre-training.
  """

  def next_losses(
    self, want: tunix_source.TrainState, directory: pathlib.Path, steps: int
  ) -> list[float]:
    """Returns the losses of pre-training, resumed from the source."""
    copy_golden(self, directory / "pretrain")
    run = maxtext_run.pretrain(
      directory / "pretrain" / "golden", self.flags, steps=steps
    )
    assert run.first_step == want.step
    return [run.losses[number] for number in range(want.step, steps)]


@dataclasses.dataclass(frozen=True)
class FineTuneSwapped(FineTune):
  """As `FineTune`, of a target whose first and second moments are swapped."""

  def change(self, step: pathlib.Path) -> None:
    swap_moments(step / "optimizer_state")


def _digests(arrays: tunix_source.Arrays) -> dict[str, str]:
  return {path: compare.digest(array) for path, array in arrays.items()}


def _keys(aux: tunix_source.Arrays) -> list[bytes]:
  """Returns every rng key."""
  return [
    key.tobytes()
    for path, array in aux.items()
    if path.endswith(".key")
    for key in array.reshape(-1, array.shape[-1])
  ]


_ADAPTER: Sequence[str] = ("--adapter=base",)
_PREFER = (*_ADAPTER, "--optimizer_wrappers=multi_steps,clip")
_REINFORCE = (
  *_ADAPTER,
  "--optimizer_wrappers=inject_hyperparams,clip",
)

POST_TRAINING = [
  FineTune("pretrain_scan_to_sft", "pretrain_scan"),
  FineTune(
    "pretrain_scan_to_sft_same_rng",
    "pretrain_scan",
    convert=["--rng=keep"],
    rng=True,
    env={"JAX_DEFAULT_PRNG_IMPL": "unsafe_rbg"},
  ),
  FineTune("pretrain_unscan_to_sft", "pretrain_unscan", scanned=False),
  FineTune(
    "pretrain_scan_sharded_to_sft",
    "pretrain_scan_sharded",
    maxtext=["ici_fsdp_parallelism=2", "ici_tensor_parallelism=2"],
    env=FOUR_DEVICES,
  ),
  PostTrain(
    "pretrain_unscan_to_sft_scanned",
    "pretrain_unscan",
    convert=QWEN3_TO_SCANNED,
    stack=True,
  ),
  PostTrain(
    "pretrain_scan_to_dpo",
    "pretrain_scan",
    convert=_PREFER,
    train=post_training.prefer,
    counters={"opt_state.mini_step": 0, "opt_state.gradient_step": 5},
  ),
  PostTrain(
    "pretrain_scan_to_rl",
    "pretrain_scan",
    convert=_REINFORCE,
    train=post_training.reinforce,
    below="actor",
    counters={
      "opt_state.count": 5,
      "opt_state.hyperparams_states.learning_rate.count": 5,
    },
  ),
]
POST_TRAINING_SWAPPED = [
  FineTuneSwapped(
    "pretrain_scan_to_sft_swapped_moments",
    "pretrain_scan",
    # A negative second moment makes the second loss NaN.
    maxtext=["abort_on_nan_loss=False"],
  )
]
