"""Tells where the time of a rewrite goes."""

import shutil
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.bench import relayout_unstack, scanned


def profile(scratch: Path, what: scanned.Scanned) -> str:
  """Returns the seconds of each phase of one conversion, as a line.

  They are summed over threads.  The caches are warm.
  """
  from relayout import _native

  scratch.mkdir()
  scanned.write_run(scratch / "source", scanned=what)
  found: defaultdict[str, float] = defaultdict(float)
  rewrite = _native.rewrite

  def timed(*arguments: Any, **options: Any) -> Any:
    started = time.perf_counter()
    result = rewrite(*arguments, **options)
    found["rewriting, wall time"] += time.perf_counter() - started
    for name, seconds in result.phase_seconds.items():
      found[name] += seconds
    return result

  relayout_unstack.convert(scratch / "source", scratch / "warm")
  shutil.rmtree(scratch / "warm")
  _native.rewrite = timed
  seconds = relayout_unstack.convert(scratch / "source", scratch / "target")
  _native.rewrite = rewrite
  shutil.rmtree(scratch)
  phases = ", ".join(f"{name} {value:.3g} s" for name, value in found.items())
  return f"in all {seconds:.3g} s; {phases}"
