"""Converts the sample checkpoint, and verifies the result.

`./bazelw run //:demo` works in a temporary directory; `./bazelw run //:demo --
DIRECTORY` leaves the result in DIRECTORY/checkpoints.
"""

import os
import shlex
import sys
import tempfile
from pathlib import Path

from relayout.cli import main

_ROOT = Path(__file__).parent.parent.parent
_SAMPLE = "tests/golden/sft_unscan/checkpoints"


def _run(*arguments: str) -> int:
  print(f"\n$ relayout {shlex.join(arguments)}", flush=True)
  return main.run(["relayout", *arguments])


def _demo(directory: Path) -> int:
  os.chdir(_ROOT)
  target = os.fspath(directory / "checkpoints")
  return _run(
    "convert",
    _SAMPLE,
    target,
    "--to=maxtext",
    "--scan_layers=true",
    "--model_name=qwen3-0.6b",
  ) or _run("verify", _SAMPLE, target)


def _main() -> int:
  if len(sys.argv) > 1:
    main.enter_callers_directory()
    return _demo(Path(sys.argv[1]).absolute())
  with tempfile.TemporaryDirectory(prefix="relayout-demo-") as directory:
    return _demo(Path(directory))


if __name__ == "__main__":
  sys.exit(_main())
