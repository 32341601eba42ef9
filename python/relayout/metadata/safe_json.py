"""JSON from an untrusted file.

`json.loads` alone accepts what a checkpoint must not hold: a key twice, nesting
deep enough to exhaust the stack of whoever walks the value, and strings that no
file name or store key can carry.
"""

import json
import pathlib
import re
from typing import Any

from relayout import errors

MAX_NUM_BYTES = 1 << 30
"""Longest side file that is read at all, bytes."""

_MAX_DEPTH = 100
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def loads(data: bytes, source: str) -> Any:
  """Returns the value that `data` spells.

  Args:
    data: UTF-8 text; `NaN` and `Infinity` are accepted, as Python writes them.
    source: Names the file, for messages.

  Raises:
    CorruptCheckpointError: If `data` is no JSON, holds a key twice, or nests
      too deeply.
  """
  try:
    text = data.decode("utf-8")
    value = json.loads(text, object_pairs_hook=_unique)
  except UnicodeDecodeError as error:
    raise errors.CorruptCheckpointError(
      f"{source}: byte {error.start} is not UTF-8; the file is damaged"
    ) from error
  except RecursionError as error:
    raise errors.CorruptCheckpointError(
      f"{source}: nested more than {_MAX_DEPTH} levels deep"
    ) from error
  except ValueError as error:
    raise errors.CorruptCheckpointError(
      f"{source}: not valid JSON ({error}); the file is damaged or cut short"
    ) from error
  _check_depth(value, source)
  if _SURROGATE_ESCAPE.search(text):
    _check_surrogates(value, source)
  return value


def read(path: pathlib.Path, *, max_num_bytes: int = MAX_NUM_BYTES) -> Any:
  """Returns the JSON value that the file at `path` holds.

  Raises:
    CorruptCheckpointError: As `loads`, or if the file can't be read or is
      longer than `max_num_bytes`.
    FileNotFoundError: If there is no such file.
  """
  return loads(read_bytes(path, max_num_bytes=max_num_bytes), str(path))


def read_bytes(
  path: pathlib.Path, *, max_num_bytes: int = MAX_NUM_BYTES
) -> bytes:
  """Returns the bytes of a regular file of at most `max_num_bytes`.

  Raises:
    CorruptCheckpointError: If it is no regular file, can't be read, or is
      longer.
    FileNotFoundError: If there is no such file.
  """
  try:
    if not path.is_file() and (path.exists() or path.is_symlink()):
      raise errors.CorruptCheckpointError(f"{path}: not a regular file")
    with path.open("rb") as file:
      data = file.read(max_num_bytes + 1)
  except FileNotFoundError:
    raise
  except OSError as error:
    raise errors.CorruptCheckpointError(
      f"{path}: can't be read ({error.strerror})"
    ) from error
  if len(data) > max_num_bytes:
    raise errors.CorruptCheckpointError(
      f"{path}: longer than {max_num_bytes} bytes, the most that is read"
    )
  return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  """Returns the object of `pairs`, whose keys must differ."""
  result = dict(pairs)
  if len(result) != len(pairs):
    seen: set[str] = set()
    for key, _ in pairs:
      if key in seen:
        raise ValueError(f"key {key[:200]!r} occurs twice in one object")
      seen.add(key)
  return result


def _check_depth(value: Any, source: str) -> None:
  """Walks the containers of `value` level by level, without recursion."""
  level = [value] if type(value) in (dict, list) else []
  for _ in range(_MAX_DEPTH):
    if not level:
      return
    level = [
      child
      for parent in level
      for child in (parent.values() if type(parent) is dict else parent)
      if type(child) is dict or type(child) is list
    ]
  raise errors.CorruptCheckpointError(
    f"{source}: nested more than {_MAX_DEPTH} levels deep"
  )


def _check_surrogates(value: Any, source: str) -> None:
  try:
    json.dumps(value, ensure_ascii=False).encode("utf-8")
  except UnicodeEncodeError as error:
    raise errors.CorruptCheckpointError(
      f"{source}: a string holds half a surrogate pair; the file is damaged"
    ) from error
