"""The benchmark runs and prints what it should; its times are not judged."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench import anonymous, contract, samples

_PROGRAM = Path(__file__).parent / "bench"
_TINY = (
  "--layers=2",
  "--shape=8,16",
  "--chunks=100,2000",
  "--scanned=8,3,16",
  "--trained=2,8,16",
  "--rounds=1",
)
_ROWS = {
  "stack": "Orbax: restore, stack, save",
  "stack_process": "cp -r",
  "rename_100": "TensorStore: copy key by key",
  "rename_2000": "TensorStore: copy key by key",
  "unstack_float32": "Orbax: restore, unstack, save",
  "unstack_float32_tensorstore": "TensorStore: copy each layer",
  "unstack_float32_bound": "zstd alone, on all cores",
  "memory_1gib": None,
  "unstack_bfloat16": "Orbax: restore, unstack, save",
  "unstack_bfloat16_tensorstore": "TensorStore: copy each layer",
  "unstack_bfloat16_bound": "zstd alone, on all cores",
  "unstack_raw": "cp -r",
  "unstack_in_shard": "Orbax: restore, unstack, save",
  "trainer_save": "Orbax",
  "trainer_save_tunix": "Tunix's manager",
  "trainer_restore": "Orbax, natively",
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
      "anonymous_mb",
    ]
    assert row["seconds"] > 0
    if row["peer"]:
      assert row["peer_seconds"] > 0
      assert row["ratio"] is not None
    assert 5 < row["peak_mb"] < 500
    if row["name"] == "memory_1gib":
      assert 1 < row["anonymous_mb"] < row["peak_mb"]
    else:
      assert row["anonymous_mb"] is None
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


def test_one_peer_of_several_and_the_profile(tmp_path):
  done = _bench(tmp_path, "--only=unstack_bfloat16_bound", "--profile")
  assert done.returncode == 0, done.stderr
  assert len(done.stdout.splitlines()) == 3
  for name in ("unstack_float32", "unstack_bfloat16", "unstack_raw"):
    assert re.search(rf"^{name}: in all .* decode .* encode", done.stderr, re.M)
  assert [*tmp_path.iterdir()] == []


def test_memory_of_the_large_source(tmp_path):
  done = _bench(tmp_path, "--only=memory_8gib", "--large", "--json")
  assert done.returncode == 0, done.stderr
  assert json.loads(done.stdout)["anonymous_mb"] > 1


@pytest.mark.parametrize(
  "argument",
  ["--only=nothing", "--only=memory_8gib", "--rounds=0", "--check"],
)
def test_wrong_usage(tmp_path, argument):
  done = _bench(tmp_path, argument)
  assert (done.returncode, done.stdout) == (2, "")


def test_no_room_is_said_before_anything_is_written(tmp_path):
  done = _bench(tmp_path, "--shape=100000000,100000000")
  assert done.returncode == 1
  assert "GB are needed" in done.stderr
  assert [*tmp_path.iterdir()] == []


def _row(name, seconds, peer_seconds, peak_mb=1, anonymous_mib=None):
  anonymous = None if anonymous_mib is None else anonymous_mib << 20

  def taken(*times):
    return samples.Samples(
      tuple(samples.Sample(time, peak_mb * 10**6, anonymous) for time in times)
    )

  peer = None if peer_seconds is None else taken(peer_seconds)
  return samples.Row(name, taken(0.001, seconds, 999), "peer", peer)


def _memory(name, mebibytes):
  return _row(name, 1, None, anonymous_mib=mebibytes)


def test_medians_and_ratio():
  row = _row("a", 2, 5)
  assert row.to_json() == {
    "name": "a",
    "seconds": 2,
    "peer": "peer",
    "peer_seconds": 5,
    "ratio": 2.5,
    "peak_mb": 1.0,
    "anonymous_mb": None,
  }
  assert "2.00 s (1 ms-999.00 s)" in samples.markdown([row])


def test_anonymous_memory_is_shown_beside_the_rest():
  row = _row("a", 2, None, peak_mb=500, anonymous_mib=100)
  assert row.to_json()["anonymous_mb"] == 104.9
  assert "500 (105 anonymous)" in samples.markdown([row])


def test_anonymous_memory_of_another_process():
  code = "x = b'1' * (200 << 20); print(flush=True); input()"
  with subprocess.Popen(
    [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
  ) as process:
    end = anonymous.watch(process.pid)
    process.stdout.readline()
    time.sleep(0.5)
    process.stdin.close()
    process.stdout.read()
    assert 200 << 20 < end() < 230 << 20


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
    ([_row("unstack_float32", 3, 12)], [True]),
    ([_row("unstack_bfloat16", 3, 11.9)], [False]),
    ([_row("unstack_float32_bound", 5, 4)], [True]),
    ([_row("unstack_bfloat16_bound", 5, 3.9)], [False]),
    ([_row("unstack_raw", 1, 0.7)], [True]),
    ([_row("unstack_raw", 1, 0.69)], [False]),
    ([_row("unstack_in_shard", 0.05, 9)], [True]),
    ([_row("unstack_in_shard", 0.11, 9)], [False]),
    ([_memory("memory_1gib", 400)], [True]),
    ([_memory("memory_1gib", 401)], [False]),
    (
      [_memory("memory_1gib", 300), _memory("memory_8gib", 400)],
      [True, True],
    ),
    ([_memory("memory_8gib", 401)], [False]),
  ],
)
def test_contract(rows, kept):
  assert [verdict.kept for verdict in contract.judge(rows)] == kept
