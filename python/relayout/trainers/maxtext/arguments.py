"""The command line of MaxText's programs."""

from collections.abc import Sequence
from pathlib import Path

from relayout.errors import OptionError

_FOLDERS = ("", "post_train")


def with_config_path(argv: Sequence[str], configs: Path) -> list[str]:
  """Returns a command line whose configuration is a path.

  Args:
    argv: Name of the program, its configuration, and `name=value`s. The
      configuration may be the bare name of one that MaxText brings, such as
      `sft.yml`.
    configs: MaxText's folder of configurations.

  Raises:
    OptionError: If no configuration is named, or there is none of the name.
  """
  program, *rest = argv
  if not rest or "=" in rest[0]:
    raise OptionError(
      f"usage: {Path(program).name} CONFIG.yml name=value ...: the first "
      "argument is the configuration, such as sft.yml or a path"
    )
  name, *values = rest
  return [program, _path(name, configs), *values]


def _path(name: str, configs: Path) -> str:
  if "/" in name or Path(name).is_file():
    return name
  candidates = [configs / folder / name for folder in _FOLDERS]
  for candidate in candidates:
    if candidate.is_file():
      return str(candidate)
  raise OptionError(
    f"{name}: neither a file nor a configuration that MaxText brings; looked "
    f"for {' and '.join(map(str, candidates))}"
  )
