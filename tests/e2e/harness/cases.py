"""The cases: what is converted, how, and what is then run on it.

`run` of a case works in a forked child and returns digests and numbers; the
tests judge them.
"""

import dataclasses
import hashlib
import pathlib
import shutil
from collections.abc import Sequence

import numpy as np
import tensorstore as ts

from harness import compare, converter, maxtext_run, tunix_source

_GOLDEN = pathlib.Path(__file__).absolute().parents[2] / "golden"
QWEN3_TO_SCANNED = ("--scan_layers=true", "--model_name=qwen3-0.6b")
FOUR_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}


@dataclasses.dataclass(frozen=True)
class Case:
  """One conversion of a golden checkpoint.

  Attributes:
    name: The case, in the tests' names.
    golden: Folder below `tests/golden`.
    source: Below `golden`: what the converter is given.
    step: Below `source`: the step directory it should take.
    convert: Flags of the converter.
    scanned: Whether the target is scanned.
    stack: Whether the converter has to stack layers for that.
    rng: Whether the source's random number state fits MaxText's, so that
      the target must carry it.
    model: Key of `maxtext_run.MODELS`.
    maxtext: More MaxText flags.
    env: Environment of the child.
  """

  name: str
  golden: str
  source: str = "checkpoints"
  step: str = "4"
  convert: Sequence[str] = ()
  scanned: bool = True
  stack: bool = False
  rng: bool = False
  model: str = "qwen3"
  maxtext: Sequence[str] = ()
  env: dict[str, str] = dataclasses.field(default_factory=dict)

  @property
  def flags(self) -> list[str]:
    """MaxText's flags for a run on the target."""
    return [
      *maxtext_run.MODELS[self.model],
      f"scan_layers={self.scanned}",
      *self.maxtext,
    ]

  def read(self, source: pathlib.Path) -> tunix_source.TrainState:
    """Returns the state that the target should have; no rng if stacked."""
    state = tunix_source.read(source / self.step)
    return tunix_source.stacked(state) if self.stack else state


@dataclasses.dataclass(frozen=True)
class Resumed:
  """What came out of `Resume`.

  Attributes:
    want: Digests of the source's state.
    got: Digests of MaxText's live state after restoring.
    want_step: The source's number of updates.
    converted: Step directories that the converter wrote, in order.
    first_step: Where MaxText's loop started.
    want_loss: Of the source's weights, evaluated before conversion.
    losses: Of the run, by step.
    saved: Step directories after the run, with their `step`.
    source_kept: Whether the source's files are what they were.
  """

  want: dict[str, str]
  got: dict[str, str]
  want_step: int
  converted: list[int]
  first_step: int
  want_loss: float
  losses: dict[int, float]
  saved: dict[int, int]
  source_kept: bool


@dataclasses.dataclass(frozen=True)
class Resume(Case):
  """Pre-training resumes from the target with its full state.

  Attributes:
    num_steps: How many steps it makes.
  """

  num_steps: int = 3

  def run(self, directory: pathlib.Path) -> Resumed:
    source = copy_golden(self, directory)
    self.prepare(source)
    want = self.read(source)
    alone = maxtext_run.reference(
      want.weights, self.flags, directory / "reference"
    )
    if self.rng:
      assert compare.digests(want) != compare.digests(
        dataclasses.replace(want, aux=alone.aux)
      ), "a fresh model's random numbers would pass for the restored ones"
    else:
      want = dataclasses.replace(want, aux=alone.aux)
    files = file_digests(source)
    target = directory / "run" / "checkpoints"
    converter.convert(source, target, *self.convert)
    converted = tunix_source.step_numbers(target)
    self.change(target)
    run = maxtext_run.pretrain(
      target.parent, self.flags, steps=want.step + self.num_steps
    )
    assert run.restored is not None
    return Resumed(
      want=compare.digests(want),
      got=compare.digests(run.restored),
      want_step=want.step,
      converted=converted,
      first_step=run.first_step,
      want_loss=alone.loss,
      losses=run.losses,
      saved=run.saved,
      source_kept=file_digests(source) == files,
    )

  def prepare(self, source: pathlib.Path) -> None:
    """Does nothing: a hook for cases that change the copy of the source."""

  def change(self, target: pathlib.Path) -> None:
    """Does nothing: a hook for cases that damage the target."""


@dataclasses.dataclass(frozen=True)
class ResumeSwapped(Resume):
  """As `Resume`, of a target whose first and second moments are swapped."""

  def change(self, target: pathlib.Path) -> None:
    swap_moments(tunix_source.latest_step(target) / "items")


@dataclasses.dataclass(frozen=True)
class ResumeAdamPax(Resume):
  """As `Resume`, of a source whose AdamW state is named as adam_pax has it."""

  def prepare(self, source: pathlib.Path) -> None:
    shutil.rmtree(source / "2")
    name_as_adam_pax(source / self.step / "optimizer_state")


@dataclasses.dataclass(frozen=True)
class Kept:
  """What came out of `KeepNumbering`.

  Attributes:
    converted: Step directories that the converter wrote, in order.
    first_step: Where MaxText's loop started.
    saved: Step directories after a run, with their `step`.
    error: Of a run whose budget is the last directory's number plus one.
  """

  converted: list[int]
  first_step: int
  saved: dict[int, int]
  error: str


@dataclasses.dataclass(frozen=True)
class KeepNumbering(Case):
  """Two runs on a target that has Tunix's directory numbers."""

  def run(self, directory: pathlib.Path) -> Kept:
    source = copy_golden(self, directory)
    target = directory / "run" / "checkpoints"
    converter.convert(source, target, *self.convert, "--step_numbering=keep")
    converted = tunix_source.step_numbers(target)
    last = converted[-1]
    error = ""
    try:
      maxtext_run.pretrain(target.parent, self.flags, steps=last + 1)
    except RuntimeError as e:
      error = str(e)
    run = maxtext_run.pretrain(target.parent, self.flags, steps=last + 3)
    return Kept(
      converted=converted,
      first_step=run.first_step,
      saved=run.saved,
      error=error,
    )


@dataclasses.dataclass(frozen=True)
class LoadParameters(Case):
  """A new run takes its weights from the target."""

  def run(self, directory: pathlib.Path) -> Resumed:
    source = copy_golden(self, directory)
    files = file_digests(source)
    weights = self.read(source).weights
    alone = maxtext_run.reference(weights, self.flags, directory / "reference")
    target = directory / "converted" / "checkpoints"
    converter.convert(source, target, *self.convert)
    step = tunix_source.latest_step(target)
    run = maxtext_run.pretrain(
      directory / "run",
      [*self.flags, f"load_parameters_path={step / 'items'}"],
      steps=1,
    )
    zeros = {path: np.zeros_like(a) for path, a in weights.items()}
    fresh = tunix_source.TrainState(
      weights=weights,
      mu=zeros,
      nu=zeros,
      count=0,
      schedule_count=0,
      step=0,
      aux=alone.aux,
    )
    assert run.restored is not None
    return Resumed(
      want=compare.digests(fresh),
      got=compare.digests(run.restored),
      want_step=0,
      converted=tunix_source.step_numbers(target),
      first_step=run.first_step,
      want_loss=alone.loss,
      losses=run.losses,
      saved=run.saved,
      source_kept=file_digests(source) == files,
    )


@dataclasses.dataclass(frozen=True)
class StackedLoss(Case):
  """The loss of one model in both scan modes, in float32."""

  def run(self, directory: pathlib.Path) -> tuple[float, float]:
    source = copy_golden(self, directory)
    state = tunix_source.read(source / self.step)

    def loss(weights: tunix_source.Arrays, *, scanned: bool) -> float:
      flags = [
        *maxtext_run.MODELS[self.model],
        "dtype=float32",
        f"scan_layers={scanned}",
      ]
      scratch = directory / f"scanned_{scanned}"
      return maxtext_run.reference(weights, flags, scratch).loss

    return (
      loss(state.weights, scanned=False),
      loss(tunix_source.stacked(state).weights, scanned=True),
    )


def name_as_adam_pax(item: pathlib.Path) -> None:
  """Rewrites an optimizer state: a clipping chain around one flat state."""
  arrays = tunix_source.read_item(item)
  shutil.rmtree(item)
  del arrays["opt_state.1.2.count.value"]
  for name, values in arrays.items():
    name = name.replace("opt_state.1.0.", "opt_state.1.")
    spec = {
      "driver": "zarr",
      "kvstore": {
        "driver": "ocdbt",
        "base": f"file://{item.resolve()}/",
        "path": f"{name}/",
      },
      "metadata": {"compressor": {"id": "zstd", "level": 1}},
      "store_data_equal_to_fill_value": True,
    }
    store = ts.open(
      spec, create=True, dtype=ts.dtype(values.dtype), shape=values.shape
    ).result()
    store.write(values).result()


def swap_moments(item: pathlib.Path) -> None:
  """Exchanges `mu` and `nu` of an item in MaxText's layout, in place."""
  base = {"driver": "ocdbt", "base": f"file://{item.resolve()}/"}
  keys = [k.decode() for k in ts.KvStore.open(base).result().list().result()]
  pairs = 0
  for key in keys:
    name, _, last = key.rpartition("/")
    driver = {".zarray": "zarr", "zarr.json": "zarr3"}.get(last)
    if not driver or ".mu." not in name:
      continue
    both = [
      ts.open(
        {"driver": driver, "kvstore": {**base, "path": f"{path}/"}}
      ).result()
      for path in (name, name.replace(".mu.", ".nu."))
    ]
    values = [array.read().result() for array in both]
    for array, value in zip(both, reversed(values), strict=True):
      array.write(value).result()
    pairs += 1
  assert pairs, f"no moments in {item}"


def copy_golden(case: Case, directory: pathlib.Path) -> pathlib.Path:
  """Copies the golden folder and returns what to convert."""
  copy = directory / "golden"
  copy_golden_folder(case.golden, copy)
  return copy / case.source


def copy_golden_folder(name: str, copy: pathlib.Path) -> None:
  """Copies the checkpoints of a golden folder."""
  shutil.copytree(_GOLDEN / name / "checkpoints", copy / "checkpoints")


def file_digests(root: pathlib.Path) -> dict[str, str]:
  """Returns the SHA-256 of every file below `root`, by its path."""
  return {
    str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(root.rglob("*"))
    if path.is_file()
  }


RESUME = [
  Resume("sft_scan", "sft_scan"),
  Resume(
    "sft_scan_earlier_step",
    "sft_scan",
    step="2",
    convert=["--step=2"],
  ),
  Resume(
    "sft_unscan_to_scanned",
    "sft_unscan",
    convert=QWEN3_TO_SCANNED,
    stack=True,
  ),
  Resume("sft_unscan_kept", "sft_unscan", scanned=False),
  Resume("dpo_scan", "dpo_scan"),
  Resume("dpo_scan_accumulated", "dpo_scan_ga2"),
  Resume("rl_scan", "rl_scan", step="actor/4"),
  Resume(
    "rl_unscan_to_scanned",
    "rl_unscan",
    source="checkpoints/actor",
    convert=QWEN3_TO_SCANNED,
    stack=True,
  ),
  # With the seed of the golden run a fresh model has the same keys.
  Resume(
    "distill_scan",
    "distill_scan_tmid",
    rng=True,
    maxtext=["init_weights_seed=7"],
  ),
  Resume("sft_scan_newer_tunix", "sft_scan_tgit"),
  Resume(
    "sft_scan_no_clipping",
    "sft_scan_noclip",
    maxtext=["gradient_clipping_threshold=0"],
  ),
  Resume(
    "sft_unscan_experts_to_scanned",
    "sft_unscan_qwen3moe",
    convert=("--scan_layers=true", "--model_name=qwen3-30b-a3b"),
    stack=True,
    model="qwen3moe",
  ),
  ResumeAdamPax("sft_scan_adam_pax", "sft_scan", maxtext=["opt_type=adam_pax"]),
  Resume("sft_scan_untrained", "sft_scan_stock0", step="0"),
  Resume(
    "sft_unscan_sharded_to_scanned",
    "sft_unscan_sharded",
    convert=QWEN3_TO_SCANNED,
    stack=True,
    maxtext=["ici_fsdp_parallelism=2", "ici_tensor_parallelism=2"],
    env=FOUR_DEVICES,
  ),
]
# A second step would see the NaN that a negative second moment makes.
RESUME_SWAPPED = [
  ResumeSwapped("sft_scan_swapped_moments", "sft_scan", num_steps=1)
]
KEEP_NUMBERING = [KeepNumbering("sft_scan_keep_numbering", "sft_scan")]
LOAD_PARAMETERS = [
  LoadParameters("sft_scan_load_parameters", "sft_scan"),
  LoadParameters(
    "rl_scan_params_only",
    "rl_scan",
    step="actor/4",
    convert=["--params_only"],
  ),
]
STACKED_LOSS = [StackedLoss("sft_unscan_stacked_loss", "sft_unscan")]
