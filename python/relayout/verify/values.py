"""Compares the values of claims, byte for byte."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from relayout.comparison.joints import Joint, join
from relayout.comparison.leaves import Pins
from relayout.comparison.mismatch import Extreme, Mismatch, merge, mismatch
from relayout.comparison.pieces import Piece, Unreadable, read_pieces
from relayout.comparison.side import Side
from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import StoredLeaf
from relayout.verify.account import Account, Held, Kind
from relayout.verify.cast import cast
from relayout.verify.claims import (
  cast_of,
  contradiction,
  difference,
  spec_of,
)
from relayout.verify.layer_order import describe_order
from relayout.verify.matching import Claim

if TYPE_CHECKING:
  import tensorstore as ts

type Progress = Callable[[str], None]
"""Is told in words what was just done, for long work."""


@dataclasses.dataclass(slots=True)
class _Found:
  """What reading has shown of one claim.

  Attributes:
    claim: The claim.
    mismatches: Where layers differ, by their place among the claim's pairs.
    problem: Why the target can't be read, or "".
  """

  claim: Claim
  mismatches: dict[int, Mismatch] = dataclasses.field(default_factory=dict)
  problem: str = ""


class Comparison:
  """Compares the values of a source and a target."""

  def __init__(
    self, source: Side, target: Side, memory_limit: int, progress: Progress
  ) -> None:
    """Prepares to compare.

    Args:
      source: The source.
      target: The target.
      memory_limit: Bytes to hold at once, about.
      progress: Is told what was just compared.
    """
    self._source, self._target = source, target
    self._memory_limit, self._progress = memory_limit, progress
    self._oracles = {**target.oracles, **source.oracles}

  def accounts(self, claims: Iterable[Claim]) -> Iterator[tuple[Account, int]]:
    """Yields an account of each claim, and the bytes compared.

    Raises:
      CorruptCheckpointError: If the source can't be read.
      UnsupportedError: If an array claims more chunks than can be read.
    """
    found: list[_Found] = []
    for claim in claims:
      wrong = contradiction(claim, self._source, self._target)
      if wrong is not None:
        yield wrong, 0
      else:
        found.append(_Found(claim))
    joints = join(pair for one in found for pair in one.claim.pairs)
    self._read(joints, found)
    hints = self._hints(joints, found)
    for one in found:
      num_bytes = spec_of(one.claim.target).num_bytes
      yield _account(one, hints.get(one.claim.target.label, "")), num_bytes

  def _read(self, joints: Sequence[Joint], found: Iterable[_Found]) -> None:
    """Reads everything, and takes down what differs."""
    by_pair = {
      id(pair): (one, place)
      for one in found
      for place, pair in enumerate(one.claim.pairs)
    }
    total = sum(joint.num_bytes for joint in joints)
    done = 0
    for event in read_pieces(joints, self._open, self._memory_limit):
      match event:
        case Piece():
          one, place = by_pair[id(event.pair)]
          mismatched = _mismatch(event)
          if mismatched is not None:
            known = one.mismatches.get(place)
            merged = merge(known, mismatched.at(event.start))
            assert merged is not None
            one.mismatches[place] = merged
        case Unreadable():
          self._take_down(event, by_pair)
        case _:
          done += event.joint.num_bytes
          self._tell(event.joint, done, total)

  def _take_down(
    self, event: Unreadable, by_pair: dict[int, tuple[_Found, int]]
  ) -> None:
    """Takes down that an array can't be read.

    Raises:
      CorruptCheckpointError: If it is one of the source.
    """
    stored = event.stored
    if stored.item.directory in self._source.oracles:
      raise CorruptCheckpointError(
        f"{stored.item.directory}: array {stored.leaf.name}: {event.reason}"
      )
    for pair in event.joint.pairs:
      one, _ = by_pair[id(pair)]
      if one.claim.target.label == stored.label:
        one.problem = one.problem or event.reason

  def _tell(self, joint: Joint, done: int, total: int) -> None:
    step = self._target.step.directory.name
    percent = 100 * done // max(total, 1)
    self._progress(f"step {step}: compared {percent} %, {joint.wide.leaf.name}")

  def _open(self, stored: StoredLeaf) -> "ts.TensorStore":
    return self._oracles[stored.item.directory].open(stored.leaf.name)

  def _hints(
    self, joints: Sequence[Joint], found: Sequence[_Found]
  ) -> dict[str, str]:
    """Says where layers are right but in another order, by target label."""
    wrong = {one.claim.target.label for one in found if one.mismatches}
    hints: dict[str, str] = {}
    for joint in joints:
      pairs = list(joint.pairs)
      labels = {pair.b.stored.label for pair in pairs}
      if wrong & labels and any(pair.a.pins or pair.b.pins for pair in pairs):
        text = describe_order(pairs, self._open, self._memory_limit)
        hints |= dict.fromkeys(labels, text)
    return hints


def _mismatch(piece: Piece) -> Mismatch | None:
  import numpy as np

  a, b = piece.a, piece.b
  if a.dtype == b.dtype:
    return mismatch(a, b)
  a = cast(a, b.dtype)
  # A cast does not keep the bits of a NaN.
  both_nan = (a != a) & (b != b)
  return mismatch(np.where(both_nan, b, a), b)


def _account(one: _Found, hint: str) -> Account:
  claim = one.claim
  if one.problem:
    return difference(Kind.UNREADABLE, claim, f"can't be read: {one.problem}")
  if one.mismatches:
    detail = _describe(one)
    if hint:
      return difference(Kind.ORDER, claim, f"{hint}; {detail}")
    return difference(Kind.VALUE, claim, detail)
  return Held(
    claim.way,
    claim.source_labels,
    claim.target.label,
    spec_of(claim.target).num_bytes,
    cast_of(claim),
  )


def _describe(one: _Found) -> str:
  """Says how much of a target leaf differs, and where first."""
  claim = one.claim
  count = sum(found.count for found in one.mismatches.values())
  index, place = min(
    (_in_stack(found.first.index, claim.pairs[place].b.pins), place)
    for place, found in one.mismatches.items()
  )
  first = one.mismatches[place].first
  largest = max((found.largest for found in one.mismatches.values()), key=_size)
  return (
    f"{count} of {spec_of(claim.target).num_elements} elements differ from "
    f"{claim.pairs[place].a.label}, first at {list(index)}: {first.b}, "
    f"expected {first.a}; the largest difference is {largest.difference:.6g}"
  )


def _size(extreme: Extreme) -> float:
  return extreme.difference


def _in_stack(index: Sequence[int], pins: Pins) -> tuple[int, ...]:
  """Returns the index in a stack of an element of one of its layers."""
  result = list(index)
  for axis, place in sorted(pins):
    result.insert(axis, place)
  return tuple(result)
