"""Accounts for rng state that was derived for a Tunix trainer.

Its programs have threefry keys of two words, pre-training keys of four; a model
has other streams scanned than unscanned.  Any keys do that differ from stream
to stream, so the rules matter for exactness only; they are stated here anew.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from relayout.comparison.keys import Key
from relayout.comparison.side import Side
from relayout.layouts.state import Role, StoredLeaf
from relayout.tree.key_path import KeyPath
from relayout.verify.account import Account, Derived, Difference, Kind
from relayout.verify.scalars import read_small

type _Words = tuple[int, ...]

_DTYPE = "uint32"
_KEY = "key"


def derived_rng(
  key: Key, stored: StoredLeaf, source: Side, target: Side
) -> Account:
  """Accounts for an rng leaf of the target that equals none of the source."""
  spec = stored.leaf.spec
  assert spec is not None
  streams = list(_streams(key.path[-1], source))
  is_told = target.record.is_conversion and target.step.layout == "tunix"
  if not streams or not is_told or target.record.options.get("rng") == "keep":
    return Difference(Kind.EXTRA, stored.label, f"the source has no {key}")
  if spec.dtype != _DTYPE:
    detail = f"data type {spec.dtype}, expected {_DTYPE}"
    return Difference(Kind.DTYPE, stored.label, detail)
  values = read_small(stored, target)
  for rule, origin, expected in _candidates(key.path, streams, spec.shape):
    if tuple(values.reshape(-1).tolist()) == tuple(expected):
      return Derived((origin.label,), stored.label, rule, None, None)
  return Difference(
    Kind.VALUE,
    stored.label,
    "rng state that follows from none of the source's by a rule",
  )


def _streams(name: str, source: Side) -> Iterator[tuple[StoredLeaf, Any]]:
  """Yields the source's keys, or counts, with their values."""
  for key, stored in source.state.with_role(Role.RNG):
    if key.path[-1] == name or key.path[-1] == _KEY:
      yield stored, read_small(stored, source)


def _candidates(
  path: KeyPath,
  streams: Sequence[tuple[StoredLeaf, Any]],
  shape: tuple[int, ...],
) -> Iterator[tuple[str, StoredLeaf, Sequence[int]]]:
  """Yields what a leaf may hold: the rule, what it is from, the values."""
  num = 1
  for length in shape:
    num *= length
  for stored, values in streams:
    is_key = stored.leaf.path.names[-1] == _KEY or _is_key_path(stored)
    if path[-1] != _KEY:
      if not is_key:
        yield "a count of the source", stored, _first(values, num)
      yield "no draw yet", stored, [0] * num
    elif is_key and values.ndim and shape:
      rows = values.reshape(-1, values.shape[-1])
      width = shape[-1]
      words = [int(word) for row in rows for word in row[:width]]
      yield f"the first {width} words of each key", stored, words
      yield f"the first {width} words of the first key", stored, words[:width]
      yield (
        "hashed from a key, for each stream and layer",
        stored,
        _hashed(tuple(map(int, rows[0])), path, num // width, width),
      )


def _is_key_path(stored: StoredLeaf) -> bool:
  """Whether a leaf is a key; Tunix adds a level below it."""
  return _KEY in stored.leaf.path.names[-2:]


def _first(values: Any, num: int) -> list[int]:
  return [int(value) for value in values.reshape(-1)[:num]]


def _hashed(words: _Words, path: KeyPath, count: int, width: int) -> list[int]:
  """Returns keys that differ for each stream and layer."""
  result: list[int] = []
  for layer in range(count):
    data = struct.pack(f">{len(words)}I", *words)
    data += "\0".join((*path, str(layer))).encode()
    digest = hashlib.sha256(data).digest()
    result += struct.unpack(f">{width}I", digest[: 4 * width])
  return result
