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

_SAMPLE = Path(__file__).parent.parent / "golden" / "sft_unscan" / "checkpoints"


def _run(*arguments: str) -> int:
  print(f"\n$ relayout {shlex.join(arguments)}", flush=True)
  return main.run(["relayout", *arguments])


def _demo(directory: Path) -> int:
  source, target = os.fspath(_SAMPLE), os.fspath(directory / "checkpoints")
  return (
    _run("inspect", source)
    or _run(
      "convert",
      source,
      target,
      "--to=maxtext",
      "--scan_layers=true",
      "--model_name=qwen3-0.6b",
    )
    or _run("verify", source, target)
  )


def _main() -> int:
  if len(sys.argv) > 1:
    main.enter_callers_directory()
    return _demo(Path(sys.argv[1]).absolute())
  with tempfile.TemporaryDirectory(prefix="relayout-demo-") as directory:
    return _demo(Path(directory))


if __name__ == "__main__":
  sys.exit(_main())
