"""What every damaged input must lead to, checked for all three commands."""

import dataclasses
import re
from pathlib import Path

from tests.corrupt.runner import Result, Runner, convert_arguments

MAX_SECONDS = 20.0
MAX_PEAK_BYTES = 1 << 30
_MAX_MESSAGE = 4000


@dataclasses.dataclass(frozen=True)
class Attack:
  """A damaged source, and where its conversion would go.

  Attributes:
    runner: Runs commands.
    root: Directory of the source; steps are below it.
    target: Directory that must not appear.
  """

  runner: Runner
  root: Path
  target: Path

  @property
  def item(self) -> Path:
    """The item of a hand-made step."""
    return self.root / "4" / "model_params"

  def refused(self, *words: str, options: tuple[str, ...] = ()) -> Result:
    """Checks that the source is refused by `convert`, in words.

    Args:
      *words: What the message must say, the name of the file for one.
      options: Of the conversion.
    """
    before = fingerprint(self.root)
    result = self._run(*convert_arguments(self.root, self.target, *options))
    assert result.code == 2, f"{result.code}: {result.stderr}"
    check_message("convert", result)
    for word in words:
      assert word in result.stderr
    self._check_nothing_written()
    self._check_other_commands()
    assert fingerprint(self.root) == before
    return result

  def harmless(self, *options: str) -> None:
    """Checks that the source converts and that the result verifies."""
    result = self._run(*convert_arguments(self.root, self.target, *options))
    assert result.code == 0, result.stderr
    verified = self._run("verify", self.root, self.target)
    assert verified.code == 0, verified.stdout + verified.stderr
    self._check_other_commands()

  def carried(self, *words: str) -> None:
    """Checks that the source converts as it is, and that `verify` tells.

    For values of metadata that no conversion has to understand.
    """
    result = self._run(*convert_arguments(self.root, self.target))
    assert result.code == 0, result.stderr
    verified = self._run("verify", self.root, self.target)
    assert verified.code in (1, 2)
    for word in words:
      assert word in verified.stdout + verified.stderr
    self._check_other_commands()

  def refused_or_harmless(
    self, *words: str, options: tuple[str, ...] = ()
  ) -> bool:
    """Checks that the source is refused, or converts well; tells which."""
    dry = self._run(
      *convert_arguments(self.root, self.target, *options), "--dry_run"
    )
    if dry.code == 0:
      self.harmless(*options)
      return False
    self.refused(*words, options=options)
    return True

  def _check_nothing_written(self) -> None:
    assert sorted(self.root.parent.iterdir()) == [self.root]

  def _check_other_commands(self) -> None:
    """Checks that the other commands survive the source."""
    inspected = self._run("inspect", self.root)
    assert inspected.code in (0, 2)
    if inspected.code:
      check_message("inspect", inspected)

  def verify_survives(self, target: Path) -> None:
    """Checks that `verify` survives the source against a good target."""
    result = self._run("verify", self.root, target)
    assert result.code in (1, 2), result.stdout
    if result.code == 2:
      check_message("verify", result)

  def _run(self, *arguments: str | Path) -> Result:
    result = self.runner.run(*arguments)
    assert not result.crashed, f"{result.code}: {result.stderr}"
    assert result.seconds < MAX_SECONDS
    assert result.peak_bytes < MAX_PEAK_BYTES
    assert is_printable(result.stdout + result.stderr), result.stderr
    return result


def fingerprint(root: Path) -> dict[str, tuple[int, ...]]:
  """Returns what changes whenever someone writes to a file below `root`."""
  result = {}
  for path in root.rglob("*"):
    found = path.lstat()
    result[str(path)] = (found.st_ino, found.st_size, found.st_mtime_ns)
  return result


def check_message(command: str, result: Result) -> None:
  """Checks that a command said one thing, on standard error."""
  assert result.stdout == ""
  assert result.stderr.startswith(f"relayout {command}: ")
  assert result.stderr.count("relayout ") >= 1
  assert len(result.stderr) < _MAX_MESSAGE
  assert len(result.stderr.strip().splitlines()) <= 2, result.stderr


def is_printable(text: str) -> bool:
  """Tells whether a terminal can't be fooled by `text`."""
  return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
