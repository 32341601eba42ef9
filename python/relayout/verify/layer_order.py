"""Recognises layers that are right but stand in another order."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relayout.comparison.joints import Pair
from relayout.comparison.leaves import Part
from relayout.comparison.oracle import READ_ERRORS
from relayout.layouts.state import StoredLeaf

if TYPE_CHECKING:
  import tensorstore as ts

_MAX_SHOWN = 24


def describe_order(
  pairs: Sequence[Pair],
  open_array: Callable[[StoredLeaf], "ts.TensorStore"],
  memory_limit: int,
) -> str:
  """Returns in words how layers are permuted, or "" if they are not.

  Args:
    pairs: The layers of a stack; their values differ from the source's.
    open_array: Opens the array of a leaf.
    memory_limit: Largest size of one layer to read it once more, bytes.
  """
  spec = pairs[0].b.stored.leaf.spec
  if len(pairs) < 2 or spec is None or 2 * spec.num_bytes > memory_limit:
    return ""
  try:
    known = [_digest(pair.a, open_array) for pair in pairs]
    found = [_digest(pair.b, open_array) for pair in pairs]
  except READ_ERRORS:
    return ""
  if sorted(found) != sorted(known):
    return ""
  order = _permutation(found, known)
  shown = ", ".join(map(str, order[:_MAX_SHOWN]))
  more = ", ..." if len(order) > _MAX_SHOWN else ""
  text = f"the layers are those of the source in another order: {shown}{more}"
  if order == sorted(order, key=str):
    text += " (sorted as text, not as numbers)"
  return text


def _permutation(found: Sequence[bytes], known: Sequence[bytes]) -> list[int]:
  """Returns for each of `found` a position in `known`, none of them twice."""
  positions: dict[bytes, list[int]] = {}
  for i, digest in reversed(list(enumerate(known))):
    positions.setdefault(digest, []).append(i)
  return [positions[digest].pop() for digest in found]


def _digest(part: Part, open_array: Callable[[StoredLeaf], Any]) -> bytes:
  array = open_array(part.stored)
  at = dict(part.pins)
  index = tuple(at.get(axis, slice(None)) for axis in range(array.rank))
  values = array[index].read().result()
  return hashlib.blake2b(values.tobytes(), digest_size=16).digest()
