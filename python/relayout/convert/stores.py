"""The databases that a target item's keys come from."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relayout import _native
from relayout.convert.plan import Stored, TargetLeaf, Way
from relayout.layouts.state import StoredLeaf
from relayout.metadata.zarr_array import array_metadata_bytes
from relayout.metadata.zarr_unshard import sharded_array, unshard_array_spec
from relayout.tree.array_spec import ArraySpec

if TYPE_CHECKING:
  from relayout._native import Listing


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
  """An array as the native core sees it.

  Attributes:
    listings: Numbers of the databases that hold chunks of it.
    name: Its name there.
    spec: What it is there.
  """

  listings: tuple[int, ...]
  name: str
  spec: ArraySpec


class Stores:
  """The databases of some leaves, numbered.

  Inner chunks of zarr shards that are needed one by one are in databases of
  their own, in which they are ordinary chunks.
  """

  def __init__(self, leaves: Iterable[TargetLeaf]) -> None:
    self.listings: list[Listing] = []
    self._numbers: dict[int, int] = {}
    self._flat_numbers: dict[int, int] = {}
    whole, opened = _split(leaves)
    for listing in _listings_of([*whole.values(), *opened.values()]):
      self._add(listing, self._numbers)
    for listing in _listings_of(opened.values()):
      arrays = [
        _sharded(stored)
        for stored in opened.values()
        if any(listing is found for found in _listings_of([stored]))
      ]
      flat = _native.flatten_shards(listing, arrays)
      self._flat_numbers[id(listing)] = len(self.listings)
      self.listings.append(flat)

  def _add(self, listing: "Listing", numbers: dict[int, int]) -> None:
    if id(listing) not in numbers:
      numbers[id(listing)] = len(self.listings)
      self.listings.append(listing)

  def add(self, listing: "Listing") -> int:
    """Adds a database; returns its number."""
    self.listings.append(listing)
    return len(self.listings) - 1

  def holder(self, stored: StoredLeaf, *, in_shards: bool) -> Holder:
    """Returns where an array is.

    Args:
      stored: The array.
      in_shards: Whether the chunks meant are the inner ones of zarr shards.
    """
    numbers = self._flat_numbers if in_shards else self._numbers
    assert stored.leaf.spec is not None
    spec = stored.leaf.spec
    return Holder(
      tuple(numbers[id(listing)] for listing in _listings_of([stored])),
      stored.leaf.name,
      unshard_array_spec(spec) if in_shards else spec,
    )

  @property
  def is_empty(self) -> bool:
    """Whether there are no databases."""
    return not self.listings


def is_in_shards(origin: Stored, stored: StoredLeaf) -> bool:
  """Whether the inner chunks of an array are needed one by one."""
  spec = stored.leaf.spec
  if origin.way is Way.REWRITTEN:
    return spec is not None and spec.inner_chunk_shape is not None
  return origin.way is Way.REKEYED_IN_SHARD


def _split(
  leaves: Iterable[TargetLeaf],
) -> tuple[dict[str, StoredLeaf], dict[str, StoredLeaf]]:
  """Returns the arrays whose chunks are needed, whole or as inner chunks."""
  whole: dict[str, StoredLeaf] = {}
  opened: dict[str, StoredLeaf] = {}
  for leaf in leaves:
    if not isinstance(leaf.origin, Stored):
      continue
    for stored in leaf.origin.sources:
      found = opened if is_in_shards(leaf.origin, stored) else whole
      found[stored.label] = stored
  return whole, opened


def _listings_of(found: Iterable[StoredLeaf]) -> list["Listing"]:
  """Returns the databases that hold chunks of some arrays, each once."""
  result = {}
  for stored in found:
    for number in (stored.leaf.listing, *stored.leaf.other_listings):
      listing = stored.item.listings[number]
      result[id(listing)] = listing
  return list(result.values())


def _sharded(stored: StoredLeaf) -> _native.ShardedArray:
  assert stored.leaf.spec is not None
  return sharded_array(
    stored.leaf.name,
    stored.leaf.spec,
    array_metadata_bytes(unshard_array_spec(stored.leaf.spec)),
  )


def key_format(spec: ArraySpec) -> _native.ChunkKeyFormat:
  """Returns how the keys of an array's chunks are spelled."""
  return _native.ChunkKeyFormat(spec.key_style, spec.key_separator)
