"""Turns the plan of an item into a request to the native core."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from relayout import _native
from relayout.convert.plan import Derived, ItemPlan, Slot, TargetLeaf, Way
from relayout.convert.rewrite import identity_move
from relayout.convert.stores import Holder, Stores, is_in_shards, key_format
from relayout.errors import CorruptCheckpointError
from relayout.metadata.small_array import chunk_key
from relayout.metadata.zarr_array import array_metadata_bytes
from relayout.metadata.zarr_new import zeros_chunk
from relayout.metadata.zarr_scalar import encode_scalar
from relayout.tree.array_spec import ArraySpec

_MAX_STRAY_KEYS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
  """What `_native.plan_rekey` takes.

  Attributes:
    listings: Source databases.
    moves: Chunks of arrays that go on.
    literals: Array metadata and derived values, by store key.
    drops: What is left out, as (listing, array name), and keys of no array, as
      (listing, key).
  """

  listings: list[_native.Listing]
  moves: list[_native.ArrayMove]
  literals: list[tuple[str, bytes]]
  drops: list[tuple[int, str | bytes]]


def make_request(
  item: ItemPlan, rewritten: Mapping[str, _native.Listing]
) -> Request:
  """Returns the request that writes the leaves of `item`.

  Args:
    item: The item.
    rewritten: For each leaf that is rewritten, by name, the database that has
      it under that name.  Leaves that it lacks are left out.
  """
  kept = [leaf for leaf in item.leaves if not _is_rewritten(leaf)]
  stores = Stores(kept)
  numbers = {
    id(listing): stores.add(listing)
    for listing in {id(x): x for x in rewritten.values()}.values()
  }
  moves: list[_native.ArrayMove] = []
  literals: list[tuple[str, bytes]] = []
  for leaf in item.leaves:
    if leaf.spec is None:
      continue
    if _is_rewritten(leaf):
      if leaf.name not in rewritten:
        continue
      number = numbers[id(rewritten[leaf.name])]
      moves.append(identity_move(leaf.name, leaf.spec, number))
    elif isinstance(leaf.origin, Derived):
      literals += _derived_chunks(leaf, leaf.spec, leaf.origin)
    else:
      moves += _moves(leaf, leaf.spec, stores)
    key = f"{leaf.name}/{leaf.spec.metadata_key}"
    literals.append((key, array_metadata_bytes(leaf.spec)))
  drops = [*_drops(stores.listings, moves), *_stray_keys(stores.listings)]
  return Request(stores.listings, moves, literals, drops)


def _is_rewritten(leaf: TargetLeaf) -> bool:
  return (
    not isinstance(leaf.origin, Derived) and leaf.origin.way is Way.REWRITTEN
  )


def _moves(
  leaf: TargetLeaf, spec: ArraySpec, stores: Stores
) -> Iterator[_native.ArrayMove]:
  assert not isinstance(leaf.origin, Derived)
  for slot in leaf.origin.slots:
    in_shards = is_in_shards(leaf.origin, slot.source)
    holder = stores.holder(slot.source, in_shards=in_shards)
    for listing in holder.listings:
      yield _native.ArrayMove(
        listing,
        holder.name,
        leaf.name,
        key_format(holder.spec),
        key_format(spec),
        list(holder.spec.grid),
        _target_index(slot, holder, spec.rank),
        list(slot.source_pins),
      )


def _target_index(
  slot: Slot, holder: Holder, rank: int
) -> list[tuple[str, int]]:
  """Returns, for each target axis, the source axis or the layer it has."""
  pinned = {axis for axis, _ in slot.source_pins}
  free = iter(axis for axis in range(holder.spec.rank) if axis not in pinned)
  layers = dict(slot.target_pins)
  return [
    ("index", layers[axis]) if axis in layers else ("axis", next(free))
    for axis in range(rank)
  ]


def _derived_chunks(
  leaf: TargetLeaf, spec: ArraySpec, origin: Derived
) -> Iterator[tuple[str, bytes]]:
  """Yields the only chunk of a derived array."""
  if origin.is_zero:
    data = zeros_chunk(spec.num_bytes)
  elif origin.values:
    data = b"".join(encode_scalar(v, spec.dtype) for v in origin.values)
  else:
    assert origin.value is not None
    data = encode_scalar(origin.value, spec.dtype)
  yield f"{leaf.name}/{chunk_key(spec, (0,) * spec.rank)}", data


def _drops(
  listings: Sequence[_native.Listing], moves: Sequence[_native.ArrayMove]
) -> list[tuple[int, str | bytes]]:
  """Returns every source array that no move names."""
  used = {(move.listing, move.source_array) for move in moves}
  return [
    (number, entry.name)
    for number, listing in enumerate(listings)
    for entry in listing.arrays()
    if (number, entry.name) not in used
  ]


def _stray_keys(
  listings: Sequence[_native.Listing],
) -> Iterator[tuple[int, bytes]]:
  """Yields the keys that belong to no array; the item's notes tell of them.

  Raises:
    CorruptCheckpointError: If there are too many to be mere leftovers.
  """
  for number, listing in enumerate(listings):
    keys = listing.stray_keys(_MAX_STRAY_KEYS + 1)
    if len(keys) > _MAX_STRAY_KEYS:
      raise CorruptCheckpointError(
        f"{listing.directory}: more than {_MAX_STRAY_KEYS} keys belong to no "
        f"array, such as {keys[0]!r}; array metadata is missing"
      )
    for key in keys:
      yield number, key
