"""The released programs under relayout's runner, and what befalls their users.

The programs' own `main` is run, with a command line.
"""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from unittest import mock

from harness import compare, maxtext_run, post_training, tunix_source
from harness.cases import copy_golden_folder

_DPO = (
  'dpo={"algo":"dpo","orpo_lambda":0.1,"dpo_label_smoothing":0.0,'
  '"dpo_beta":0.1,"max_prompt_length":16}'
)


@dataclasses.dataclass(frozen=True)
class ProgramCase:
  """A child process in which a story is told.

  Attributes:
    name: The case, in the tests' names.
    run: Tells it: returns what was seen, by name.
  """

  name: str
  run: Callable[[pathlib.Path], dict[str, Any]]

  env: ClassVar[Mapping[str, str]] = {}


def _run(
  name: str,
  config: str,
  run_directory: pathlib.Path,
  *flags: str,
  scanned: bool = True,
) -> None:
  """Runs a program with the small model and the bare name of a config."""
  from relayout.trainers.maxtext import programs

  model = [*maxtext_run.MODELS["qwen3"], f"scan_layers={scanned}"]
  argv = maxtext_run.argv(run_directory, [*model, *flags])
  programs.run(name, [argv[0], config, *argv[2:]])


def _refusal(*args: Any, **kwargs: Any) -> str:
  """Returns with which error a program is refused."""
  from relayout.errors import RelayoutError

  try:
    _run(*args, **kwargs)
  except RelayoutError as error:
    return str(error)
  return "no error"


def _steps(run_directory: pathlib.Path) -> dict[int, int]:
  """Returns the `step` of each step directory."""
  checkpoints = run_directory / "checkpoints"
  return {
    number: int(
      tunix_source.read_item(checkpoints / str(number) / "items")["step"]
    )
    for number in tunix_source.step_numbers(checkpoints)
  }


def _fine_tune(directory: pathlib.Path) -> dict[str, Any]:
  """Trains, asks for nothing, for the impossible, and goes on elsewhere."""
  first, second = directory / "first", directory / "second"
  _run("train_sft", "sft.yml", first, "steps=2")
  seen: dict[str, Any] = {"saved": _steps(first)}
  seen["nothing to do"] = _refusal("train_sft", "sft.yml", first, "steps=2")
  with _no_data():
    seen["no data"] = _refusal(
      "train_sft", "sft.yml", directory / "empty", "steps=2"
    )
  start = f"load_full_state_path={first / 'checkpoints' / '2'}"
  with _losses() as losses:
    _run("train_sft", "sft.yml", second, start, "steps=3")
  seen["saved from full state"] = _steps(second)
  seen["losses"] = losses
  with _losses() as losses:
    _run("train_sft", "sft.yml", first, "steps=3")
  seen["losses of the run itself"] = losses
  return seen


def _prefer(directory: pathlib.Path) -> dict[str, Any]:
  """Starts preference optimization from a fine-tuned full state."""
  tuned, preferred = directory / "tuned", directory / "preferred"
  _run("train_sft", "sft.yml", tuned, "steps=2")
  start = f"load_full_state_path={tuned / 'checkpoints'}"
  with post_training.given_pairs(), _losses() as losses:
    _run("train_dpo", "dpo.yml", preferred, start, _DPO, "steps=4")
  return {"saved": _steps(preferred), "losses": losses}


def _pretrain(directory: pathlib.Path) -> dict[str, Any]:
  """Pre-training, from steps of Tunix with unscanned layers."""
  actor = directory / "rl" / "checkpoints" / "actor"
  copy_golden_folder("rl_scan", directory / "golden_rl")
  shutil.copytree(directory / "golden_rl" / "checkpoints" / "actor", actor)
  seen: dict[str, Any] = {
    "level": _refusal("pretrain", "base.yml", directory / "rl", "steps=5")
  }
  copy_golden_folder("sft_unscan", directory / "golden")
  step = directory / "golden" / "checkpoints" / "4"
  want = tunix_source.stacked(tunix_source.read(step))
  run = maxtext_run.Run()
  with maxtext_run.watch(run):
    _run(
      "pretrain",
      "base.yml",
      directory / "full",
      f"load_full_state_path={step}",
      "steps=5",
    )
  seen["full state"] = _differences(want, run.restored)
  seen["first step"] = run.first_step
  run = maxtext_run.Run()
  with maxtext_run.watch(run):
    _run(
      "pretrain",
      "base.yml",
      directory / "weights",
      f"load_parameters_path={step / 'model_params'}",
      "steps=1",
    )
  weights = dataclasses.replace(run.restored, mu=want.mu, nu=want.nu)
  weights = dataclasses.replace(weights, count=4, schedule_count=4, step=4)
  seen["weights"] = _differences(want, weights)
  seen["source kept"] = sorted(p.name for p in step.iterdir())
  return seen


def _distill(directory: pathlib.Path) -> dict[str, Any]:
  """Distills from a teacher that Tunix wrote, with unscanned layers.

  The teacher takes no command line, so all is in a configuration file.
  """
  import maxtext
  import yaml

  from relayout.trainers.maxtext import programs

  copy_golden_folder("sft_unscan", directory / "golden")
  run_directory = directory / "distilled"
  model = dict(
    flag.split("=", 1)
    for flag in (*maxtext_run.MODELS["qwen3"], "override_model_config=True")
  )
  model = {name: yaml.safe_load(value) for name, value in model.items()}
  flags = maxtext_run.argv(run_directory, [])[2:]
  common = {
    name: yaml.safe_load(value)
    for name, value in (flag.split("=", 1) for flag in flags)
  }
  base = pathlib.Path(maxtext.__file__).parent / "configs" / "base.yml"
  teacher = str(directory / "golden" / "checkpoints" / "4" / "model_params")
  config = directory / "distill.yml"
  content = {
    "base_config": str(base),
    **common,
    **model,
    "learning_rate": 0.01,
    "scan_layers": True,
    "steps": 2,
    "student_overrides": model,
    "teacher_overrides": {**model, "load_parameters_path": teacher},
  }
  config.write_text(yaml.safe_dump(content))
  with post_training.given_tokenizer(_distillation()), _losses() as losses:
    programs.run("train_distill", ["train_distill", str(config)])
  return {"saved": _steps(run_directory), "losses": losses}


def _distillation() -> Any:
  from maxtext.trainers.post_train.distillation import train_distill

  return train_distill


def _imports(directory: pathlib.Path) -> dict[str, Any]:
  """Tries the program that needs what is not installed."""
  return {
    "train_rl": _refusal("train_rl", "rl.yml", directory / "rl", "steps=1")
  }


def _differences(want: Any, got: Any) -> list[str]:
  return compare.differences(
    *(compare.digests(dataclasses.replace(s, aux={})) for s in (want, got))
  )


@contextlib.contextmanager
def _losses() -> Iterator[list[float]]:
  """Yields the losses of the trainers of Tunix, as they come."""
  from tunix.sft import inflight_throttler

  throttler = inflight_throttler.InflightThrottler
  add = throttler.add_computation
  losses: list[float] = []

  def add_watched(self: Any, loss: Any) -> None:
    losses.append(float(loss))
    add(self, loss)

  with mock.patch.object(throttler, "add_computation", add_watched):
    yield losses


@contextlib.contextmanager
def _no_data() -> Iterator[None]:
  """Lets synthetic data fail, as it does without a hash of the config."""
  from maxtext.input_pipeline import synthetic_data_processing as synthetic

  def fail(self: Any) -> Any:
    raise TypeError("unhashable type")

  with mock.patch.object(synthetic.SyntheticDataIterator, "__next__", fail):
    yield


CASES: Sequence[ProgramCase] = (
  ProgramCase("fine_tune", _fine_tune),
  ProgramCase("prefer", _prefer),
  ProgramCase("pretrain", _pretrain),
  ProgramCase("distill", _distill),
  ProgramCase("imports", _imports),
)
