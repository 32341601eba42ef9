"""Which leaves of a source go on, by patterns of their names."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence

from relayout.errors import OptionError
from relayout.layouts.state import Dropped, Role, StateKey, StoredLeaf
from relayout.tree.key_path import dotted


def check_patterns(patterns: Iterable[str], option: str) -> None:
  """Checks patterns, which are shell wildcards over dotted model paths.

  Raises:
    OptionError: If one is empty.
  """
  for pattern in patterns:
    if not pattern:
      raise OptionError(f"{option}: the pattern is empty")


class Selection:
  """What `--keep` and `--drop` select.

  A pattern is matched against the dotted path of a leaf in the model, and
  against the name under which it is stored, `<item>/<array>`; `*` stands for
  anything, dots too.
  """

  def __init__(self, keep: Sequence[str], drop: Sequence[str]) -> None:
    self._keep = _Patterns(keep)
    self._drop = _Patterns(drop)

  def reason_to_drop(self, key: StateKey, stored: StoredLeaf) -> str:
    """Returns why a leaf is left out, or "" if it goes on.

    Counters have no path in the model, and go on unless they are named.
    """
    names = (stored.label, *((dotted(key.path),) if key.path else ()))
    pattern = self._drop.match(names)
    if pattern:
      return f"--drop={pattern}"
    is_kept = bool(self._keep.match(names))
    if not self._keep or is_kept or not key.path or key.role is Role.STEP:
      return ""
    return "matches no --keep pattern"

  def check_used(self) -> None:
    """Raises OptionError for a pattern that matched no leaf."""
    for option, patterns in (("--keep", self._keep), ("--drop", self._drop)):
      for pattern in patterns.unused():
        raise OptionError(
          f"{option}={pattern}: matches no leaf. Patterns are matched against "
          "the whole path in the model, such as decoder.layers.mlp.wi.kernel, "
          "and `*` stands for any part of it; `relayout inspect` lists them"
        )


class _Patterns:
  def __init__(self, patterns: Sequence[str]) -> None:
    self._compiled = {
      text: re.compile(fnmatch.translate(text)) for text in patterns
    }
    self._used: set[str] = set()

  def __bool__(self) -> bool:
    return bool(self._compiled)

  def match(self, names: Iterable[str]) -> str:
    """Returns the first pattern that matches one of `names`, or ""."""
    found = [
      text
      for text, pattern in self._compiled.items()
      if any(pattern.match(name) for name in names)
    ]
    self._used.update(found)
    return found[0] if found else ""

  def unused(self) -> Iterator[str]:
    return (text for text in self._compiled if text not in self._used)


def split(
  leaves: Iterable[tuple[StateKey, StoredLeaf]], selection: Selection
) -> tuple[dict[StateKey, StoredLeaf], list[Dropped]]:
  """Returns the leaves that go on, and those that are left out."""
  kept: dict[StateKey, StoredLeaf] = {}
  dropped = []
  for key, stored in leaves:
    reason = selection.reason_to_drop(key, stored)
    if reason:
      dropped.append(Dropped(stored, reason))
    else:
      kept[key] = stored
  return kept, dropped
