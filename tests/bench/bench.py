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

from tests.bench import cases, comparison, contract, machine, samples
from tests.bench.samples import Row

_PROGRAM = (
  Path(__file__).parents[2] / "python" / "relayout" / "cli" / "relayout"
)


def main(argv: Sequence[str] | None = None) -> int:
  """Runs what the command line asks for; returns the exit code."""
  parser = _parser()
  parsed = parser.parse_args(argv)
  sizes = _sizes(parsed)
  if parsed.check and sizes != cases.Sizes():
    parser.error("--check is about the standard sizes only")
  chosen = [*cases.make(sizes, _PROGRAM)]
  names = [case.name for case in chosen]
  if unknown := {*(parsed.only or ())} - {*names}:
    parser.error(
      f"no row {', '.join(sorted(unknown))}; rows: {', '.join(names)}"
    )
  if parsed.only:
    chosen = [case for case in chosen if case.name in parsed.only]
  base = _callers_directory() / (parsed.dir or tempfile.gettempdir())
  with tempfile.TemporaryDirectory(
    prefix="relayout-bench-", dir=base
  ) as scratch:
    _check_room(chosen, Path(scratch))
    _say(machine.describe(Path(scratch)))
    rows = _measure(chosen, Path(scratch), parsed)
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
  sizes = cases.Sizes()
  parser.add_argument("--layers", type=_positive, default=sizes.num_layers)
  parser.add_argument("--shape", type=_numbers, default=sizes.shape)
  parser.add_argument("--chunks", type=_numbers, default=sizes.chunks)
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
  return cases.Sizes(parsed.layers, (rows, columns), parsed.chunks)


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
