"""Converts a real checkpoint through the public Python library."""

import os
import pathlib
import sys

from relayout.convert.options import Options
from relayout.convert.run import convert


def main():
  [run] = sys.argv[1:]
  target = pathlib.Path(os.environ["TEST_TMPDIR"]) / "out"
  convert(pathlib.Path(run) / "checkpoints", target, Options(to="maxtext"))
  steps = list(target.iterdir())
  assert steps
  for step in steps:
    assert (step / "items" / "manifest.ocdbt").is_file(), step


if __name__ == "__main__":
  main()
