"""The benchmark runs and prints what it should; its times are not judged."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.bench import contract, samples

_PROGRAM = Path(__file__).parent / "bench"
_TINY = ("--layers=2", "--shape=8,16", "--chunks=100,2000", "--rounds=1")
_ROWS = {
  "stack": "Orbax: restore, stack, save",
  "stack_process": "cp -r",
  "rename_100": "TensorStore: copy key by key",
  "rename_2000": "TensorStore: copy key by key",
}


def _bench(scratch, *arguments):
  return subprocess.run(
    [_PROGRAM, *_TINY, *arguments],
    env={**os.environ, "TMPDIR": str(scratch)},
    capture_output=True,
    text=True,
    check=False,
  )


def test_each_row_is_a_line_of_json(tmp_path):
  done = _bench(tmp_path, "--json")
  assert done.returncode == 0, done.stderr
  rows = [json.loads(line) for line in done.stdout.splitlines()]
  assert {row["name"]: row["peer"] for row in rows} == _ROWS
  for row in rows:
    assert [*row] == [
      "name",
      "seconds",
      "peer",
      "peer_seconds",
      "ratio",
      "peak_mb",
    ]
    assert row["seconds"] > 0
    assert row["peer_seconds"] > 0
    assert row["ratio"] > 0
    assert 5 < row["peak_mb"] < 500
  assert "processor: " in done.stderr
  assert [*tmp_path.iterdir()] == []


def test_one_row_as_a_table(tmp_path):
  done = _bench(tmp_path, "--only=rename_100")
  assert done.returncode == 0, done.stderr
  head, line, row = done.stdout.splitlines()
  assert head.startswith("| row ")
  assert set(line) == {"|", "-"}
  assert row.startswith("| `rename_100` ")
  assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
  "argument", ["--only=nothing", "--rounds=0", "--check"]
)
def test_wrong_usage(tmp_path, argument):
  done = _bench(tmp_path, argument)
  assert (done.returncode, done.stdout) == (2, "")


def test_no_room_is_said_before_anything_is_written(tmp_path):
  done = _bench(tmp_path, "--shape=100000000,100000000")
  assert done.returncode == 1
  assert "GB are needed" in done.stderr
  assert [*tmp_path.iterdir()] == []


def _row(name, seconds, peer_seconds, peak_mb=1):
  def taken(*times):
    return samples.Samples(
      tuple(samples.Sample(time, peak_mb * 10**6) for time in times)
    )

  peer = None if peer_seconds is None else taken(peer_seconds)
  return samples.Row(name, taken(0.001, seconds, 999), "peer", peer)


def test_medians_and_ratio():
  row = _row("a", 2, 5)
  assert row.to_json() == {
    "name": "a",
    "seconds": 2,
    "peer": "peer",
    "peer_seconds": 5,
    "ratio": 2.5,
    "peak_mb": 1.0,
  }
  assert "2.00 s (1 ms-999.00 s)" in samples.markdown([row])


def test_a_row_without_peer():
  row = _row("a", 2, None)
  assert row.to_json()["ratio"] is None
  assert samples.markdown([row]).endswith("| -     |")


@pytest.mark.parametrize(
  ("rows", "kept"),
  [
    ([_row("stack", 0.05, 10)], [True]),
    ([_row("stack", 0.05, 9)], [False]),
    ([_row("stack_process", 0.4, 0.5)], [True, True]),
    ([_row("stack_process", 0.4, 0.3, peak_mb=151)], [False, False]),
    ([_row("stack_process", 0.6, 0.7)], [True, False]),
    ([_row("rename_1000000", 4, None)], [True]),
    (
      [_row("rename_100000", 0.3, 6), _row("rename_1000000", 4, None)],
      [True, True, False],
    ),
  ],
)
def test_contract(rows, kept):
  assert [verdict.kept for verdict in contract.judge(rows)] == kept
