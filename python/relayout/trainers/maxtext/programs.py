"""Runs the released MaxText's programs, as they are.

What is changed for the time of a run are places that the programs look up
anyway: which checkpoint manager they make, and the paths in the configuration.
"""

import dataclasses
import functools
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError, UnsupportedError
from relayout.trainers.maxtext import arguments, directories, settings, sources
from relayout.trainers.maxtext.progress import Progress
from relayout.trainers.maxtext.session import (
  Session,
  configured,
  our_manager,
  watched,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
  """A program of MaxText.

  Attributes:
    module: Where its `main` is.
    initialize: The function of `pyconfig` by which it reads its configuration.
    has_manager: Whether it makes a checkpoint manager of Tunix.
    level: Below which level of the run's checkpoints it keeps its steps.
    has_reference: Whether the weights that it starts from also are those of a
      model that it compares with, made before a checkpoint is restored.
    distills: Whether it makes a manager of its own, and knows no budget.
  """

  module: str
  initialize: str = "initialize_pydantic"
  has_manager: bool = True
  level: str = ""
  has_reference: bool = False
  distills: bool = False


PROGRAMS = {
  "pretrain": Program(
    "maxtext.trainers.pre_train.train", "initialize", has_manager=False
  ),
  "train_sft": Program("maxtext.trainers.post_train.sft.train_sft"),
  "train_dpo": Program(
    "maxtext.trainers.post_train.dpo.train_dpo", has_reference=True
  ),
  "train_rl": Program(
    "maxtext.trainers.post_train.rl.train_rl",
    level=directories.ACTOR,
    has_reference=True,
  ),
  "train_distill": Program(
    "maxtext.trainers.post_train.distillation.train_distill",
    "initialize",
    distills=True,
  ),
}

_REMEDIES = {
  "tpu_inference": "it is what MaxText runs vLLM with on a TPU: install "
  "MaxText with its extra for post-training on TPU (`maxtext[tpu-post-train]`) "
  "where there is one",
}


def run(name: str, argv: Sequence[str]) -> None:
  """Runs a program.

  Args:
    name: Key of `PROGRAMS`.
    argv: Its command line, whose first argument may be the bare name of a
      configuration that MaxText brings.

  Raises:
    RelayoutError: If the program can't run here, can't load what it shall
      start from, or would end without having trained.
  """
  program = PROGRAMS[name]
  main = load(program).main
  argv = arguments.with_config_path(argv, _configs())
  if program.has_manager:
    _run_managed(program, main, argv)
    return
  prepare = functools.partial(_prepare, program)
  with configured(prepare, program.initialize):
    main(argv)


def _run_managed(program: Program, main: Any, argv: Sequence[str]) -> None:
  """Runs a program that makes a checkpoint manager."""
  progress = Progress(ends_by_itself=not program.distills)
  with (
    our_manager(distills=program.distills) as session,
    watched(progress),
    configured(functools.partial(_read, program, session), program.initialize),
  ):
    main(argv)
  progress.check()


def load(program: Program) -> Any:
  """Imports a program.

  Raises:
    UnsupportedError: If a package is missing; says which, and what helps.
  """
  try:
    return importlib.import_module(program.module)
  except ImportError as error:
    missing = error.name or str(error)
    remedy = _REMEDIES.get(
      missing.partition(".")[0], "install it beside MaxText 0.2.5"
    )
    raise UnsupportedError(
      f"{program.module} can't be imported, for {missing} is missing or is of "
      f"another version ({error}): {remedy}"
    ) from error


def _read(program: Program, session: Session, config: Any) -> None:
  """Takes over the configuration of a program that makes a manager."""
  if session.config is None:
    session.config = config
  _prepare(program, config)


def _prepare(program: Program, config: Any) -> None:
  """Checks where the run is, and makes readable what it starts from."""
  checkpoints = settings.text(config, "checkpoint_dir")
  goes_on = directories.has_steps(checkpoints, level=program.level)
  names = [sources.PARAMETERS]
  if not any(
    settings.text(config, name)
    for name in (sources.PARAMETERS, sources.FULL_STATE)
  ):
    directories.check_level(checkpoints, level=program.level)
  if not program.has_manager:
    # It loads either only where there is no step, and itself.
    names = [] if goes_on else [*names, sources.FULL_STATE]
  elif program.has_reference:
    _give_reference(config)
  sources.make_readable(config, *names)


def _give_reference(config: Any) -> None:
  """Lets the reference model, too, start from the full state."""
  start = settings.text(config, sources.FULL_STATE)
  if start and not settings.text(config, sources.PARAMETERS):
    settings.put(config, sources.PARAMETERS, start)


def _configs() -> Path:
  try:
    from maxtext.utils.globals import MAXTEXT_CONFIGS_DIR
  except ImportError as error:
    raise RelayoutError(
      f"MaxText is not what it was ({error}): relayout knows 0.2.5"
    ) from error
  return Path(MAXTEXT_CONFIGS_DIR)
