"""What a conversion was told to leave out.

This explains why a leaf is absent; whether it is, the arrays say.
"""

import fnmatch
from collections.abc import Iterator

from relayout.comparison.record import Record
from relayout.tree.key_path import KeyPath, dotted


def reason_to_leave_out(record: Record, label: str, path: KeyPath) -> str:
  """Returns which option left out a leaf, or "".

  Args:
    record: What the target says.
    label: `<item>/<array>` of the leaf.
    path: Its path in the model; empty for counters.
  """
  names = (label, *((dotted(path),) if path else ()))
  for pattern in _patterns(record, "drop"):
    if any(fnmatch.fnmatchcase(name, pattern) for name in names):
      return f"left out on request: --drop={pattern}"
  kept = list(_patterns(record, "keep"))
  is_kept = any(
    fnmatch.fnmatchcase(name, pattern) for pattern in kept for name in names
  )
  if kept and path and not is_kept:
    return "left out on request: matches no --keep pattern"
  return ""


def _patterns(record: Record, option: str) -> Iterator[str]:
  found = record.options.get(option)
  for pattern in found if isinstance(found, list) else ():
    if isinstance(pattern, str):
      yield pattern
