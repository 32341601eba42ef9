"""Checks what can be said of a claim without reading values."""

import math
from collections.abc import Mapping
from typing import Any

from relayout.comparison.keys import Key
from relayout.comparison.side import Side
from relayout.layouts.lora import is_quantized
from relayout.layouts.state import Role, StoredLeaf
from relayout.tree.array_spec import ArraySpec
from relayout.verify.account import Difference, Kind
from relayout.verify.matching import Claim, is_rng

_FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})
_OPTION_OF_ROLE = {
  Role.WEIGHT.value: "weights",
  Role.AUXILIARY.value: "weights",
  Role.MOMENT.value: "moments",
}


def contradiction(
  claim: Claim, source: Side, target: Side
) -> Difference | None:
  """Returns why a claim can't be true, or None."""
  return (
    _shape(claim)
    or _dtype(claim, target)
    or _kind(claim)
    or _incomplete(claim, source, target)
  )


def cast_of(claim: Claim) -> str:
  """Returns both data types, if they differ; else ""."""
  before = spec_of(claim.pairs[0].a.stored).dtype
  after = spec_of(claim.target).dtype
  return "" if before == after else f"{before} -> {after}"


def spec_of(stored: StoredLeaf) -> ArraySpec:
  """Returns the array of a leaf that has one."""
  assert stored.leaf.spec is not None
  return stored.leaf.spec


def difference(kind: Kind, claim: Claim, detail: str) -> Difference:
  """Returns that a claim is wrong."""
  return Difference(kind, claim.target.label, detail, claim.source_labels)


def _shape(claim: Claim) -> Difference | None:
  for pair in claim.pairs:
    if pair.a.shape != pair.b.shape:
      detail = (
        f"shape {list(pair.b.shape)}, expected {list(pair.a.shape)} from "
        f"{pair.a.label}"
      )
      return difference(Kind.SHAPE, claim, detail)
  return None


def _dtype(claim: Claim, target: Side) -> Difference | None:
  after = spec_of(claim.target).dtype
  for pair in claim.pairs:
    before = spec_of(pair.a.stored).dtype
    options = target.record.options
    if before != after and not _is_asked_for(pair.key, before, after, options):
      detail = (
        f"data type {after}, expected {before} from {pair.a.stored.label}"
      )
      return difference(Kind.DTYPE, claim, detail)
  return None


def _is_asked_for(
  key: Key, before: str, after: str, options: Mapping[str, Any]
) -> bool:
  """Whether the conversion was told to cast such a leaf."""
  if not {before, after} <= _FLOATS or (key.path and is_quantized(key.path)):
    return False
  kind = _OPTION_OF_ROLE.get(key.role)
  dtypes = options.get("dtypes")
  asked = kind and isinstance(dtypes, dict) and dtypes.get(kind) == after
  return bool(asked or (kind and options.get("like")))


def _kind(claim: Claim) -> Difference | None:
  """Returns that the kind of rng keys is not what it was, or None."""
  found = claim.target.leaf.random_key_impl
  for pair in claim.pairs:
    expected = pair.a.stored.leaf.random_key_impl
    if is_rng(pair.key) and found != expected:
      detail = (
        f"array_metadatas says random_key_impl {found}, the source's {expected}"
      )
      return difference(Kind.METADATA, claim, detail)
  return None


def _incomplete(claim: Claim, source: Side, target: Side) -> Difference | None:
  """Returns that chunks are absent, which would be read as the fill value."""
  if any(num_absent(stored, source) for stored in claim.sources):
    return None
  tree = claim.target.item.tree
  if tree is not None and tree.store_array_data_equal_to_fill_value is False:
    return None  # values tell
  absent = num_absent(claim.target, target)
  if not absent:
    return None
  detail = f"{absent} of its chunks are not stored, all of the source's are"
  return difference(Kind.STORE, claim, detail)


def num_absent(stored: StoredLeaf, side: Side) -> int:
  """Returns how many chunks of an array are not stored."""
  expected = math.prod(spec_of(stored).grid)
  found = side.oracle(stored).arrays[stored.leaf.name].num_chunks
  return max(0, expected - found)
