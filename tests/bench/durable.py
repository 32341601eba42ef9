"""Makes written files durable, for the sides that do not do so themselves."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def sync_tree(root: Path) -> None:
  """Syncs every file and directory below `root`, side by side, and its parent.

  Side by side is the quickest way: such syncs share commits of the journal.
  """
  paths = [
    os.path.join(directory, name)
    for directory, _, files in os.walk(root)
    for name in (".", *files)
  ]
  with ThreadPoolExecutor(16) as executor:
    for _ in executor.map(_sync, [*paths, root.parent]):
      pass


def _sync(path: str | Path) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
