"""Measures relayout beside the other ways to the same result.

./bazelw run //tests/bench [-- --json] [--only=NAME] [--rounds=5] [--check]

docs/benchmarks.md says what each row means.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import (
  cases,
  comparison,
  contract,
  machine,
  phases,
  samples,
  sides,
  unstack_cases,
)
from tests.bench.samples import Row
from tests.bench.trainer_states import Size

_ROOT = Path(__file__).parents[2]
_PROGRAMS = cases.Programs(
  relayout=_ROOT / "python" / "relayout" / "cli" / "relayout",
  codec_bound=_ROOT / "tests" / "bench" / "codec_bound",
)


def main(argv: Sequence[str] | None = None) -> int:
  """Runs what the command line asks for; returns the exit code."""
  parser = _parser()
  parsed = parser.parse_args(argv)
  sizes = _sizes(parsed)
  if parsed.check and sizes != cases.Sizes():
    parser.error("--check is about the standard sizes only")
  chosen = [*cases.make(sizes, _PROGRAMS, large=parsed.large)]
  names = [name for case in chosen for name in case.peers]
  if unknown := {*(parsed.only or ())} - {*names}:
    parser.error(
      f"no row {', '.join(sorted(unknown))}; rows: {', '.join(names)}"
    )
  if parsed.only:
    some = (case.only(parsed.only) for case in chosen)
    chosen = [case for case in some if case is not None]
  base = _callers_directory() / (parsed.dir or tempfile.gettempdir())
  with tempfile.TemporaryDirectory(
    prefix="relayout-bench-", dir=base
  ) as scratch:
    _check_room(chosen, Path(scratch))
    _say(machine.describe(Path(scratch)))
    rows = _measure(chosen, Path(scratch), parsed)
    if parsed.profile:
      _say_profiles(sizes, Path(scratch))
    _say(f"load at the end: {machine.load()}")
  if not parsed.json:
    print(samples.markdown(rows))
  if sizes != cases.Sizes():
    return 0
  return _judge(rows, check=parsed.check)


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(prog="bench", description=__doc__)
  parser.add_argument(
    "--json", action="store_true", help="print each row as a line of JSON"
  )
  parser.add_argument(
    "--only", action="append", metavar="NAME", help="measure this row (again)"
  )
  parser.add_argument("--rounds", type=_positive, default=5)
  parser.add_argument(
    "--dir", type=Path, help="where to work (default: TMPDIR)"
  )
  parser.add_argument(
    "--check", action="store_true", help="exit with 1 if a promise is broken"
  )
  parser.add_argument(
    "--large", action="store_true", help="also measure memory with 8 GiB"
  )
  parser.add_argument(
    "--profile",
    action="store_true",
    help="also print where the time of unstacking goes",
  )
  sizes = cases.Sizes()
  parser.add_argument("--layers", type=_positive, default=sizes.num_layers)
  parser.add_argument("--shape", type=_numbers, default=sizes.shape)
  parser.add_argument("--chunks", type=_numbers, default=sizes.chunks)
  parser.add_argument("--scanned", type=_numbers, default=sizes.scanned)
  parser.add_argument("--trained", type=_numbers, default=None)
  return parser


def _positive(text: str) -> int:
  number = int(text)
  if number < 1:
    raise ValueError(text)
  return number


def _numbers(text: str) -> tuple[int, ...]:
  return tuple(map(_positive, text.split(",")))


def _sizes(parsed: argparse.Namespace) -> cases.Sizes:
  rows, columns = parsed.shape
  length, layers, width = parsed.scanned
  return cases.Sizes(
    num_layers=parsed.layers,
    shape=(rows, columns),
    chunks=parsed.chunks,
    scanned=(length, layers, width),
    trained=_trained(parsed.trained),
  )


def _trained(numbers: tuple[int, ...] | None) -> Size:
  if numbers is None:
    return Size()
  layers, rows, columns = numbers
  return Size(layers, (rows, columns))


def _callers_directory() -> Path:
  """Returns where the user stands; `bazel run` starts programs elsewhere."""
  names = ("BAZELW_CWD", "BUILD_WORKING_DIRECTORY")
  return Path(next(filter(None, map(os.environ.get, names)), os.getcwd()))


def _check_room(chosen: Sequence[comparison.Case], scratch: Path) -> None:
  needed = max(case.source.num_scratch_bytes for case in chosen)
  free = shutil.disk_usage(scratch).free
  if free < needed:
    sys.exit(
      f"bench: {scratch.parent} has {free / 1e9:.1f} GB free, and "
      f"{needed / 1e9:.1f} GB are needed; name another place with --dir"
    )


def _measure(
  chosen: Sequence[comparison.Case], scratch: Path, parsed: argparse.Namespace
) -> list[Row]:
  rows = []
  for row in comparison.run(
    chosen, scratch, num_rounds=parsed.rounds, progress=_say
  ):
    rows.append(row)
    if parsed.json:
      print(json.dumps(row.to_json()), flush=True)
  return rows


def _say_profiles(sizes: cases.Sizes, scratch: Path) -> None:
  for name, what in unstack_cases.rewritten(sizes.scanned).items():
    _say(f"{name}: {sides.call(phases.profile, scratch / name, what)}")


def _judge(rows: Sequence[Row], *, check: bool) -> int:
  verdicts = contract.judge(rows)
  for verdict in verdicts:
    _say(f"{'kept' if verdict.kept else 'BROKEN'}: {verdict.text}")
  return int(check and not all(verdict.kept for verdict in verdicts))


def _say(message: str) -> None:
  print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
  # So that an interrupted run removes what it wrote.
  signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
  sys.exit(main())
