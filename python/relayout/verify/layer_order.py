"""Recognises a stack whose layers are right but stand in another order."""

import hashlib
from collections.abc import Sequence
from typing import Any

from relayout.verify.compare import Compared
from relayout.verify.opening import OracleOf
from relayout.verify.oracle import READ_ERRORS

_MAX_SHOWN = 24


def describe_order(
  compared: Compared, oracle_of: OracleOf, memory_limit: int
) -> str:
  """Returns in words how the layers are permuted, or "" if they are not.

  Args:
    compared: A stack whose values differ from the source's.
    oracle_of: Gives the store that holds a leaf.
    memory_limit: Largest size of the stack to read it once more, bytes.
  """
  if compared.axis is None or 2 * compared.num_bytes > memory_limit:
    return ""
  try:
    order = _order(compared, oracle_of, compared.axis)
  except READ_ERRORS:
    return ""
  if order is None:
    return ""
  shown = ", ".join(map(str, order[:_MAX_SHOWN]))
  more = ", ..." if len(order) > _MAX_SHOWN else ""
  text = f"the layers are those of the source in another order: {shown}{more}"
  if order == sorted(order, key=str):
    text += " (sorted as text, not as numbers)"
  return text


def _order(
  compared: Compared, oracle_of: OracleOf, axis: int
) -> list[int] | None:
  """Returns the source layer of each target layer; None if any is missing."""
  comparison = compared.comparison
  name = comparison.target.leaf.name
  target = oracle_of(comparison.target).open(name).read().result()
  found = [
    _digest(target.take(i, axis=axis)) for i in range(target.shape[axis])
  ]
  known = [
    _digest(oracle_of(source).open(source.leaf.name).read().result())
    for source in comparison.sources
  ]
  if sorted(found) != sorted(known):
    return None
  return _permutation(found, known)


def _permutation(found: Sequence[bytes], known: Sequence[bytes]) -> list[int]:
  """Returns for each of `found` a position in `known`, none of them twice."""
  positions: dict[bytes, list[int]] = {}
  for i, digest in reversed(list(enumerate(known))):
    positions.setdefault(digest, []).append(i)
  return [positions[digest].pop() for digest in found]


def _digest(array: Any) -> bytes:
  return hashlib.blake2b(array.tobytes(), digest_size=16).digest()
