"""The command line, as a process: exit codes, streams, what it loads."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relayout.cli import commands, main
from tests.support import golden

_PROGRAM = Path(__file__).parent / "relayout"


def _relayout(*arguments, cwd=None, env=None):
  return subprocess.run(
    [_PROGRAM, *map(str, arguments)],
    cwd=cwd,
    env={**os.environ, **(env or {})},
    capture_output=True,
    text=True,
    check=False,
  )


def test_main_job(tmp_path):
  source = golden.checkpoints("sft_unscan")
  done = _relayout(
    "convert",
    source,
    tmp_path / "out",
    "--to=maxtext",
    "--scan_layers=true",
    "--model_name=qwen3-0.6b",
  )
  assert (done.returncode, done.stderr) == (0, "")
  assert "unscanned -> scanned" in done.stdout
  assert "33 stacked" in done.stdout
  verified = _relayout("verify", source, tmp_path / "out")
  assert (verified.returncode, verified.stderr) == (0, "")


def test_paths_may_go_up(tmp_path):
  shutil.copytree(golden.checkpoints("sft_scan_noclip"), tmp_path / "in")
  (tmp_path / "here").mkdir()
  paths = ("../in", "../here/../out")
  for arguments in (
    ("inspect", "../in"),
    ("convert", *paths, "--to=maxtext"),
    ("verify", *paths),
  ):
    done = _relayout(*arguments, cwd=tmp_path / "here")
    assert (done.returncode, done.stderr) == (0, "")


def test_json_of_every_command(tmp_path):
  source = golden.checkpoints("sft_scan")
  inspected = json.loads(_relayout("inspect", source, "--json").stdout)
  assert inspected["layout"] == "tunix"
  assert [step["number"] for step in inspected["steps"]] == [2, 4]
  assert inspected["facts"]["layers"] == "scanned"
  model = inspected["items"]["model_params"]
  assert model["store"] == "ocdbt"
  assert model["zarr"] == [2]
  arguments = ("convert", source, tmp_path / "out", "--to=maxtext", "--json")
  converted = json.loads(_relayout(*arguments).stdout)
  assert [step["status"] for step in converted["steps"]] == ["converted"] * 2
  assert converted["peak_memory_bytes"] > 0
  verified = _relayout("verify", source, tmp_path / "out", "--json")
  assert json.loads(verified.stdout)


@pytest.mark.parametrize("level", ["", "4", "4/model_params"])
def test_inspect_a_run_a_step_and_an_item(level):
  done = _relayout("inspect", golden.checkpoints("dpo_scan") / level)
  assert done.returncode == 0
  assert "tunix" in done.stdout
  assert "decoder.layers.mlp.wi_0.kernel" in done.stdout


@pytest.mark.parametrize("name", [*golden.TUNIX, *golden.MAXTEXT])
def test_inspect_every_golden_checkpoint(name):
  done = _relayout("inspect", golden.checkpoints(name))
  assert (done.returncode, done.stderr) == (0, "")
  assert "not recognised" not in done.stdout


def test_paths_are_relative_to_the_user(tmp_path):
  shutil.copytree(golden.checkpoints("sft_scan_noclip"), tmp_path / "in")
  arguments = ("convert", "in", "out", "--to=maxtext")
  assert _relayout(*arguments, cwd=tmp_path).returncode == 0
  assert (tmp_path / "out" / "3" / "items").is_dir()
  # Under `bazel run` the process starts elsewhere.
  moved = ("convert", "in", "out2", "--to=maxtext")
  env = {"BUILD_WORKING_DIRECTORY": str(tmp_path)}
  assert _relayout(*moved, env=env).returncode == 0
  assert (tmp_path / "out2" / "3" / "items").is_dir()


@pytest.mark.parametrize(
  "arguments",
  [
    (),
    ("convert",),
    ("convert", "a", "b"),
    ("convert", "a", "b", "--to=paxml"),
    ("convert", "a", "b", "--to=maxtext", "--scan_layers=maybe"),
    ("convert", "a", "b", "--to=maxtext", "--step=first"),
    ("convert", "a", "b", "--to=maxtext", "--unknown"),
    ("inspect", "a", "b"),
    ("inspect", ""),
    ("convert", "a", "", "--to=maxtext"),
    ("convert", "a", "gs://bucket/b", "--to=maxtext"),
    ("frobnicate",),
  ],
)
def test_wrong_usage_is_exit_code_2(arguments, tmp_path):
  done = _relayout(*arguments, cwd=tmp_path)
  assert done.returncode == 2
  assert "usage: relayout" in done.stderr
  assert done.stdout == ""


@pytest.mark.parametrize("command", ["inspect", "convert", "verify"])
def test_unusable_input_is_exit_code_2_and_one_message(command, tmp_path):
  (tmp_path / "empty").mkdir()
  arguments = [command, tmp_path / "empty"]
  arguments += [] if command == "inspect" else [tmp_path / "out"]
  arguments += ["--to=maxtext"] if command == "convert" else []
  done = _relayout(*arguments)
  assert done.returncode == 2
  assert "Traceback" not in done.stderr
  assert str(tmp_path / "empty") in done.stderr
  assert not (tmp_path / "out").exists()


def test_a_difference_is_exit_code_1(tmp_path):
  source = golden.checkpoints("sft_scan")
  _relayout("convert", source, tmp_path / "out", "--to=maxtext")
  other = golden.checkpoints("sft_scan_noclip")
  assert _relayout("verify", other, tmp_path / "out").returncode == 1


def test_conversion_loads_neither_jax_nor_numpy(tmp_path):
  code = (
    "import sys\n"
    "from relayout.cli import main\n"
    "code = main.run(['relayout', 'convert', *sys.argv[1:], '--to=maxtext'])\n"
    "assert code == 0\n"
    "heavy = {'jax', 'numpy', 'tensorstore', 'orbax', 'flax'}\n"
    "heavy &= set(sys.modules)\n"
    "assert not heavy, heavy\n"
  )
  done = subprocess.run(
    [
      sys.executable,
      "-c",
      code,
      golden.checkpoints("sft_scan"),
      tmp_path / "out",
    ],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr


def test_a_closed_pipe_is_no_error():
  command = (
    f"'{_PROGRAM}' inspect '{golden.checkpoints('sft_unscan')}' | head -1"
  )
  done = subprocess.run(
    ["bash", "-o", "pipefail", "-c", command],
    capture_output=True,
    text=True,
    check=False,
  )
  assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_pipe_hides_no_difference(tmp_path):
  _relayout("convert", golden.checkpoints("sft_scan"), tmp_path, "--to=maxtext")
  other = golden.checkpoints("sft_scan_noclip")
  done = subprocess.run(
    [
      "bash",
      "-o",
      "pipefail",
      "-c",
      f"'{_PROGRAM}' verify {other} {tmp_path} | true",
    ],
    capture_output=True,
    text=True,
    check=False,
  )
  assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_conversion_leaves_nothing(tmp_path, number):
  code = (
    "import os, sys\n"
    "from relayout.cli import main\n"
    "from relayout.convert import side_files\n"
    "write = side_files.step_files\n"
    "def interrupt(plan):\n"
    f"  os.kill(os.getpid(), {int(number)})\n"
    "  return write(plan)\n"
    "side_files.step_files = interrupt\n"
    "main.main()\n"
  )
  done = subprocess.run(
    [
      sys.executable,
      "-c",
      code,
      "convert",
      golden.checkpoints("sft_scan"),
      tmp_path / "out",
      "--to=maxtext",
    ],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 128 + number
  assert "Traceback" not in done.stderr
  assert list(tmp_path.iterdir()) == []


def test_a_defect_is_not_taken_for_a_difference(monkeypatch, capsys):
  def fail(_parsed):
    raise KeyError("unforeseen")

  monkeypatch.setitem(commands.COMMANDS, "verify", fail)
  code = main.run(["relayout", "verify", "a", "b"])
  assert code == main.EXIT_DEFECT
  assert "unforeseen" in capsys.readouterr().err


def test_diff(capsys):
  path = str(golden.checkpoints("sft_scan"))
  assert main.run(["relayout", "diff", path, path]) == 0
  assert "equal: 2 steps" in capsys.readouterr().out
  steps = [f"{path}/2", f"{path}/4"]
  assert main.run(["relayout", "diff", *steps, "--show=1"]) == 1
  out = capsys.readouterr().out
  assert out.count("elements differ") == 1
  assert "DIFFERENT" in out
  assert main.run(["relayout", "diff", *steps, "--values=none"]) == 0
  capsys.readouterr()
  assert main.run(["relayout", "diff", *steps, "--json"]) == 1
  [step] = json.loads(capsys.readouterr().out)["steps"]
  assert all("hash" in leaf["a"] for leaf in step["leaves"] if leaf["b"])


def test_diff_of_unlike_forms_needs_the_grouping(capsys):
  sides = [str(golden.checkpoints(name)) for name in ("sft_scan", "sft_unscan")]
  assert main.run(["relayout", "diff", *sides]) == 2
  assert "--model_name" in capsys.readouterr().err
  options = ["--layer_pattern=flat", "--a_scan_axis=1"]
  assert main.run(["relayout", "diff", *sides, *options]) == 1
