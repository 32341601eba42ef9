"""Every trainer, scan mode and kind of model, under our checkpoint manager.

One run saves at 2, 4 and 6 updates. A second one goes on from 4; MaxText's
pre-training goes on from the very same directory; and the trainer from what
pre-training then saved.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Iterator

from harness import (
  compare,
  managed,
  maxtext_run,
  maxtext_source,
  post_training,
  tunix_source,
)

_HANDOVER = 4
_BUDGET = 6
_SET_BY_PRETRAINING = (
  "jax_default_prng_impl",
  "jax_remove_size_one_mesh_axis_from_type",
  "jax_use_shardy_partitioner",
)
# Most of a case is XLA's work, and no step runs more than a few times.
_QUICKLY_COMPILED = {
  "XLA_FLAGS": "--xla_backend_optimization_level=0"
  " --xla_llvm_disable_expensive_passes=true"
}


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What came out of a case.

  Attributes:
    losses: Of the run that was never interrupted, by updates done before.
    saved: Its step directories.
    resumed_at: Updates done when the second run began.
    resumed_losses: Of the second run, likewise.
    end: Digests of all values at the end of the first run.
    resumed_end: Those of the second run.
    cold_end: Those of a run from scratch that made as many steps as the second.
    handed_over: Digests of the state that was saved.
    pretrained: Of pre-training's live state after restoring.
    pretraining_losses: By step.
    pretraining_saved: Step directory to the `step` in it.
    way_back: Digests of what pre-training then saved.
    back: Of the trainer's live state after restoring that.
    back_losses: Of the trainer after that, by updates done before.
    back_saved: Step directories after that.
    tree: What the manager's items say of each leaf, and the step of itself.
    pretraining_tree: The same of what pre-training saved.
  """

  losses: dict[int, float]
  saved: list[int]
  resumed_at: int
  resumed_losses: dict[int, float]
  end: dict[str, str]
  resumed_end: dict[str, str]
  cold_end: dict[str, str]
  handed_over: dict[str, str]
  pretrained: dict[str, str]
  pretraining_losses: dict[int, float]
  pretraining_saved: dict[int, int]
  way_back: dict[str, str]
  back: dict[str, str]
  back_losses: dict[int, float]
  back_saved: list[int]
  tree: dict[str, str]
  pretraining_tree: dict[str, str]


@dataclasses.dataclass(frozen=True)
class MatrixCase:
  """A trainer over a model.

  Attributes:
    trainer: Key of `managed.TRAINERS`.
    scanned: Whether the model's layers are scanned.
    model: Key of `maxtext_run.MODELS`.
  """

  trainer: str
  scanned: bool
  model: str

  env = _QUICKLY_COMPILED

  @property
  def name(self) -> str:
    """The case, in the tests' names."""
    mode = "scanned" if self.scanned else "unscanned"
    return f"{self.trainer.replace(' ', '_')}_{mode}_{self.model}"

  @property
  def flags(self) -> list[str]:
    """MaxText's flags; of a flag that is there twice, the last one counts."""
    return [
      *maxtext_run.MODELS[self.model],
      f"scan_layers={self.scanned}",
      "base_num_decoder_layers=2",
    ]

  def run(self, directory: pathlib.Path) -> Outcome:
    _share_compilations()
    with post_training.one_batch():
      return self._run(directory)

  def _run(self, directory: pathlib.Path) -> Outcome:
    whole = self._train(directory / "whole")
    step = self._checkpoints(directory / "whole") / str(_HANDOVER)
    self._copy(step, directory / "resumed")
    resumed = self._train(directory / "resumed")
    with _settings_kept():
      pretraining = maxtext_run.pretrain(
        directory / "pretraining",
        [*self.flags, f"load_full_state_path={step / 'items'}"],
        steps=_HANDOVER + 1,
      )
    assert pretraining.restored is not None
    next_step = tunix_source.latest_step(
      directory / "pretraining" / "checkpoints"
    )
    self._copy(next_step, directory / "back")
    back = self._train(directory / "back")
    return Outcome(
      losses=_by_updates(whole),
      saved=whole.saved,
      resumed_at=resumed.first_step,
      resumed_losses=_by_updates(resumed),
      end=whole.after[_BUDGET].digests(),
      resumed_end=resumed.after[_BUDGET].digests(),
      cold_end=whole.after[_BUDGET - _HANDOVER].digests(),
      handed_over=compare.digests(whole.after[_HANDOVER].state),
      pretrained=_digests(pretraining.restored),
      pretraining_losses=pretraining.losses,
      pretraining_saved=pretraining.saved,
      way_back=_digests(maxtext_source.read(next_step)),
      back=compare.digests(back.after[back.first_step].state),
      back_losses=_by_updates(back),
      back_saved=back.saved,
      tree=_tree(step),
      pretraining_tree=_tree(next_step),
    )

  def _train(self, run_directory: pathlib.Path) -> managed.Run:
    return managed.train(
      self.trainer,
      run_directory,
      self.flags,
      steps=_BUDGET,
      look_after=(_BUDGET - _HANDOVER, _HANDOVER),
    )

  def _checkpoints(self, run_directory: pathlib.Path) -> pathlib.Path:
    below = managed.TRAINERS[self.trainer].below
    return run_directory / "checkpoints" / below

  def _copy(self, step: pathlib.Path, run_directory: pathlib.Path) -> None:
    shutil.copytree(step, self._checkpoints(run_directory) / step.name)


def _by_updates(run: managed.Run) -> dict[int, float]:
  return dict(enumerate(run.losses, start=run.first_step))


def _digests(state: tunix_source.TrainState) -> dict[str, str]:
  """Returns digests of what each program must find: all but rng state."""
  return compare.digests(dataclasses.replace(state, aux={}))


def _tree(step: pathlib.Path) -> dict[str, str]:
  """Returns key types, kind, data type and shape of each leaf but rng state.

  And what the item says of all leaves, and the step of its layers.
  """
  item = step / "items"
  described = json.loads((item / "_METADATA").read_text())
  arrays = tunix_source.read_item(item)
  leaves = described.pop("tree_metadata")
  found = {}
  for leaf in leaves.values():
    name = ".".join(key["key"] for key in leaf["key_metadata"])
    array = arrays.get(name)
    stored = "" if array is None else f"{array.dtype}{list(array.shape)}"
    kinds = [key["key_type"] for key in leaf["key_metadata"]]
    kind = leaf["value_metadata"]["value_type"]
    if not name.startswith("nnx_aux."):
      found[name] = f"{kinds} {kind} {stored}"
  custom = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  layers = custom["custom_metadata"]["scan_layers"]
  return found | {"item": str(described), "scan_layers": str(layers)}


def _share_compilations() -> None:
  """Lets the runs of a case compile each function once, however small.

  MaxText sets the directory, below the child's home.
  """
  import jax

  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


@contextlib.contextmanager
def _settings_kept() -> Iterator[None]:
  """Undoes what pre-training sets in JAX: trainers have their own process."""
  import jax

  before = {name: getattr(jax.config, name) for name in _SET_BY_PRETRAINING}
  yield
  for name, value in before.items():
    jax.config.update(name, value)


CASES = [
  MatrixCase(trainer, scanned, model)
  for model in ("qwen3", "qwen3moe")
  for trainer in managed.TRAINERS
  for scanned in (True, False)
]

_FULL = "RELAYOUT_FULL_MATRIX"
"""Environment variable that asks for all cases."""


def cases_to_run() -> list[MatrixCase]:
  """Returns the cases that CI has time for, or all if that is asked for.

  Of the larger model each trainer has one, so that both scan modes occur.
  """
  if os.environ.get(_FULL):
    return CASES
  scanned = {"SFT": True, "DPO": False, "RL actor": True, "distillation": False}
  return [
    case
    for case in CASES
    if case.model == "qwen3" or case.scanned == scanned[case.trainer]
  ]


_HEADER = (
  "trainer",
  "layers",
  "model",
  "trains and saves",
  "resumes itself exactly",
  "pre-training resumes: weights, moments, step",
  "way back",
)


def table() -> list[str]:
  """Returns the lines of the table in `docs/matrix.md`."""
  rows = [
    (
      case.trainer,
      "scanned" if case.scanned else "unscanned",
      case.model,
      *["yes"] * (len(_HEADER) - 3),
    )
    for case in CASES
  ]
  lines = [_HEADER, ["---"] * len(_HEADER), *rows]
  return [f"| {' | '.join(cells)} |".replace(" --- ", "---") for cells in lines]


def trainers_table() -> list[str]:
  """Returns the lines of the table of trainers in `docs/matrix.md`."""
  return [
    "| trainer | what is run |",
    "|---|---|",
    *(f"| {name} | {t.driven} |" for name, t in managed.TRAINERS.items()),
  ]
