"""The demo as a user runs it: a program that leaves a verified result."""

import os
import subprocess
from pathlib import Path

from tests.support import stores

_PROGRAM = Path(__file__).parent / "demo"


def _run(*arguments, cwd, **environment):
  inherited = {
    name: value
    for name, value in os.environ.items()
    if name not in ("BAZELW_CWD", "BUILD_WORKING_DIRECTORY")
  }
  return subprocess.run(
    [_PROGRAM, *map(str, arguments)],
    cwd=cwd,
    env=inherited | environment,
    capture_output=True,
    text=True,
    check=False,
  )


def _check_output(done):
  assert (done.returncode, done.stderr) == (0, "")
  commands = [
    line.split()[2]
    for line in done.stdout.splitlines()
    if line.startswith("$ relayout ")
  ]
  assert commands[-2:] == ["convert", "verify"]
  assert "unscanned -> scanned" in done.stdout
  *_, verified = done.stdout.split("$ relayout verify ")
  assert "verified" in verified


def _check_result(directory):
  steps = sorted(path.name for path in directory.iterdir())
  assert steps == ["1", "3"]
  for step in steps:
    names = stores.array_names(directory / step / "items")
    assert "params.params.decoder.layers.mlp.wi_0.kernel" in names


def test_into_a_directory(tmp_path):
  _check_output(_run(tmp_path / "out", cwd=tmp_path))
  _check_result(tmp_path / "out" / "checkpoints")


def test_a_directory_that_is_relative_to_the_user(tmp_path):
  (tmp_path / "elsewhere").mkdir()
  done = _run(
    "out",
    cwd=tmp_path / "elsewhere",
    BUILD_WORKING_DIRECTORY=str(tmp_path),
  )
  _check_output(done)
  _check_result(tmp_path / "out" / "checkpoints")


def test_without_a_directory_nothing_stays(tmp_path):
  _check_output(_run(cwd=tmp_path, TMPDIR=str(tmp_path)))
  assert list(tmp_path.iterdir()) == []
