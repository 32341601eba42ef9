"""Conversions in processes of their own, to be killed and measured."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS = 240
"""A conversion that takes longer hangs."""

_CONVERT = """
import json, os, signal, sys, threading, time
from pathlib import Path
from relayout.convert import rewriting
from relayout.convert.options import Options
from relayout.convert.run import convert

task = json.loads(sys.argv[1])
rewriting._PART_BYTES = task["part_bytes"]

def anonymous():
  status = Path("/proc/self/status").read_text()
  return int(status.split("RssAnon:")[1].split()[0]) << 10

def progress(message):
  for text, action in task["at"].items():
    if text not in message:
      continue
    if action == "kill":
      while task["after"] and not [*Path(task["target"]).glob(task["after"])]:
        time.sleep(0.01)
      os.kill(os.getpid(), signal.SIGKILL)
    print("reached", flush=True)
    sys.stdin.readline()

peaks = [0]
done = threading.Event()

def sample():
  while not done.wait(0.001):
    peaks[-1] = max(peaks[-1], anonymous())

sampler = threading.Thread(target=sample, daemon=True)
base = anonymous()
sampler.start()
for number in range(task["repeat"]):
  report = convert(
    Path(task["source"]),
    Path(task["target"], str(number)) if number else Path(task["target"]),
    Options(**task["options"]),
    progress=progress,
  )
  peaks.append(0)
done.set()
sampler.join()
print(json.dumps({
  "base": base,
  "peaks": peaks[:-1],
  "report": report.to_json(),
}))
"""


def start(
  source: Path,
  target: Path,
  options: dict[str, Any],
  *,
  part_bytes: int = 1 << 28,
  at: dict[str, str] | None = None,
  after: str = "",
  repeat: int = 1,
) -> subprocess.Popen[str]:
  """Starts a conversion; its last line of output is what `result` returns.

  Args:
    source: As of `convert`.
    target: As of `convert`; a repetition goes to a directory below it.
    options: Arguments of `Options`.
    part_bytes: Size of a part of what is rewritten.
    at: What happens when a message of progress has a text: `kill`, or `wait`
      for a line of input, after saying `reached`.
    after: Pattern of a path below the target that must be there before it is
      killed.
    repeat: How often to convert.
  """
  task = {
    "source": str(source),
    "target": str(target),
    "options": options,
    "part_bytes": part_bytes,
    "at": at or {},
    "after": after,
    "repeat": repeat,
  }
  return subprocess.Popen(
    [sys.executable, "-c", _CONVERT, json.dumps(task)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    text=True,
  )


def result(process: subprocess.Popen[str], line: str = "") -> dict[str, Any]:
  """Returns what a conversion said that came to its end.

  Returns:
    `base`: anonymous memory before it, bytes; `peaks`: the most during each
    repetition; `report`: of the last, as JSON.
  """
  stdout, stderr = process.communicate(line, timeout=SECONDS)
  assert process.returncode == 0, stderr
  return json.loads(stdout.splitlines()[-1])
