"""Watches the anonymous memory of another process.

That is what the process holds itself, without mapped pages of files, which the
kernel takes back when it needs the room.
"""

import threading
from collections.abc import Callable
from pathlib import Path

_SECONDS_BETWEEN = 0.002


def watch(pid: int) -> Callable[[], int]:
  """Reads RssAnon again and again; returns what ends that with the peak, bytes.

  The process must not have been waited for when it ends.
  """
  ended = threading.Event()
  peak = 0

  def look() -> None:
    nonlocal peak
    while not ended.wait(_SECONDS_BETWEEN):
      peak = max(peak, _num_bytes(pid))

  thread = threading.Thread(target=look)
  thread.start()

  def end() -> int:
    ended.set()
    thread.join()
    return peak

  return end


def _num_bytes(pid: int) -> int:
  """Returns RssAnon of a process; 0 for one that is at its end."""
  for line in Path(f"/proc/{pid}/status").read_text().splitlines():
    if line.startswith("RssAnon:"):
      return int(line.split()[1]) * 1024
  return 0
