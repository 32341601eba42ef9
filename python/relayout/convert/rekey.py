"""Turns the plan of a step into a request to the native core."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from relayout import _native
from relayout.convert.plan import Derived, Moved, Stacked, StepPlan, TargetLeaf
from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import StoredLeaf
from relayout.metadata.item import Item
from relayout.metadata.zarr_array import array_metadata_bytes
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


def make_request(plan: StepPlan) -> Request:
  """Returns the request that writes the leaves of `plan`."""
  numbers = _number_listings(plan.items)
  moves: list[_native.ArrayMove] = []
  literals: list[tuple[str, bytes]] = []
  for leaf in plan.leaves:
    if leaf.spec is None:
      continue
    key = f"{leaf.name}/{leaf.spec.metadata_key}"
    literals.append((key, array_metadata_bytes(leaf.spec)))
    if isinstance(leaf.origin, Derived):
      literals.append(_scalar_chunk(leaf, leaf.spec, leaf.origin))
    else:
      moves += _moves(leaf, leaf.spec, numbers)
  listings = [listing for item in plan.items for listing in item.listings]
  drops = [*_drops(listings, moves), *_stray_keys(listings)]
  return Request(listings, moves, literals, drops)


def _number_listings(items: Sequence[Item]) -> Mapping[int, int]:
  """Returns the number of each item's first listing, by the item's id."""
  numbers = {}
  count = 0
  for item in items:
    numbers[id(item)] = count
    count += len(item.listings)
  return numbers


def _listings(stored: StoredLeaf, numbers: Mapping[int, int]) -> list[int]:
  """Returns the numbers of the listings that hold chunks of a leaf."""
  first = numbers[id(stored.item)]
  return [first + i for i in (stored.leaf.listing, *stored.leaf.other_listings)]


def _moves(
  leaf: TargetLeaf, spec: ArraySpec, numbers: Mapping[int, int]
) -> list[_native.ArrayMove]:
  if isinstance(leaf.origin, Moved):
    return [*_move(leaf.origin.source, leaf, spec, numbers, None)]
  assert isinstance(leaf.origin, Stacked)
  return [
    move
    for index, source in enumerate(leaf.origin.sources)
    for move in _move(source, leaf, spec, numbers, (leaf.origin.axis, index))
  ]


def _move(
  stored: StoredLeaf,
  leaf: TargetLeaf,
  spec: ArraySpec,
  numbers: Mapping[int, int],
  layer: tuple[int, int] | None,
) -> Iterator[_native.ArrayMove]:
  """Moves one source array; `layer` is (axis, index) in a stack."""
  source = stored.leaf.spec
  assert source is not None
  terms: list[tuple[str, int]] = [("axis", i) for i in range(source.rank)]
  if layer is not None:
    terms.insert(layer[0], ("index", layer[1]))
  for listing in _listings(stored, numbers):
    yield _native.ArrayMove(
      listing,
      stored.leaf.name,
      leaf.name,
      _key_format(source),
      _key_format(spec),
      list(source.grid),
      terms,
    )


def _key_format(spec: ArraySpec) -> _native.ChunkKeyFormat:
  return _native.ChunkKeyFormat(spec.key_style, spec.key_separator)


def _scalar_chunk(
  leaf: TargetLeaf, spec: ArraySpec, origin: Derived
) -> tuple[str, bytes]:
  assert origin.value is not None
  chunk = "0" if spec.key_style == "v2" else "c"
  return f"{leaf.name}/{chunk}", encode_scalar(origin.value, spec.dtype)


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
