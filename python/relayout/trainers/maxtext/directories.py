"""What is in the run's own directory before a program starts."""

from pathlib import Path

from relayout.errors import OptionError

ACTOR = "actor"
"""The level that reinforcement learning puts between a run and its steps."""


def check_level(checkpoints: str, *, level: str = "") -> None:
  """Checks that the run's steps are where the program looks for them.

  Pre-training sees nothing of a run of reinforcement learning, and the other
  way round: it starts afresh, without a word.

  Args:
    checkpoints: The run's directory of checkpoints.
    level: Below which level the program looks; "": directly in it.

  Raises:
    OptionError: If there are steps, but elsewhere.
  """
  root = Path(checkpoints)
  other = "" if level else ACTOR
  there = _steps(root / other)
  if not there or has_steps(checkpoints, level=level):
    return
  newest = root / other / str(max(there))
  raise OptionError(
    f"{root / other} holds {len(there)} steps, the newest {max(there)}, and "
    f"this program looks in {root / level}: it would start from scratch. To go "
    f"on from there, give another run_name and load_full_state_path={newest}, "
    "or load_parameters_path for the weights alone"
  )


def has_steps(checkpoints: str, *, level: str = "") -> bool:
  """Whether the program will go on with the run, and load nothing else."""
  return bool(_steps(Path(checkpoints) / level))


def _steps(directory: Path) -> list[int]:
  if not directory.is_dir():
    return []
  return [int(p.name) for p in directory.iterdir() if p.name.isdecimal()]
