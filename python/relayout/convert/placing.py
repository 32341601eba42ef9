"""Turns what a target consists of into leaves with names and metadata."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from relayout.convert import ways
from relayout.convert.composition import Composed
from relayout.convert.plan import Derived, Slot, Stored, TargetLeaf, Way
from relayout.convert.reference import Reference
from relayout.convert.tunix_rng import THREEFRY_IMPL
from relayout.errors import CorruptCheckpointError, LayoutError
from relayout.layouts import lora
from relayout.layouts.layout import Extra, Layout, Naming, Place
from relayout.layouts.state import Role, State, StateKey, StoredLeaf
from relayout.metadata.sharding import (
  single_device_sharding,
  stacked_sharding,
  unstacked_sharding,
)
from relayout.metadata.zarr_new import Storage, new_array
from relayout.metadata.zarr_scalar import scalar_array
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import dotted

type Placed = tuple[str, TargetLeaf]
"""The name of an item, and a leaf of it."""

FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})
"""Data types that become one another."""

_LIMITS = {
  "int32": (0, 2**31 - 1),
  "uint32": (0, 2**32 - 1),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
  """What decides the names and the metadata of a target's leaves.

  Attributes:
    layout: The target's layout.
    naming: What its names depend on.
    wishes: What is asked of every array.
    dtypes: Data type of the floating-point leaves of a role.
    zarr_format: Of arrays that are made anew.
    reference: A checkpoint that the target shall look like, or None.
  """

  layout: Layout
  naming: Naming
  wishes: ways.Wishes
  dtypes: Mapping[Role, str]
  zarr_format: Literal[2, 3]
  reference: Reference | None = None

  def dtype_at(self, place: Place) -> str | None:
    """Returns the data type that the reference has there, or None."""
    if self.reference is None:
      return None
    leaf = self.reference.leaf(place.item, dotted(place.path.names))
    return leaf.spec.dtype if leaf and leaf.spec else None


def stored_leaf(composed: Composed, rules: Rules) -> Placed | None:
  """Returns a leaf whose values are stored in the source.

  None if the target's layout has no place for it.

  Raises:
    LayoutError: If its parts differ.
  """
  place = rules.layout.place(composed.key, rules.naming)
  if place is None:
    return None
  dtype = _wanted_dtype(composed, place, rules)
  spec, origin = ways.choose(composed, dtype, rules.wishes)
  return place.item, leaf_at(place, spec, origin, composed)


def leaf_at(
  place: Place, spec: ArraySpec, origin: Stored, composed: Composed
) -> TargetLeaf:
  """Returns the leaf at `place`."""
  slot = composed.slots[0]
  layers = sorted(composed.layers) if slot.target_pins else []
  leaf = slot.source.leaf
  return TargetLeaf(
    path=place.path,
    spec=spec,
    origin=origin,
    write_shape=_write_shape(slot, layers, spec, origin),
    random_key_impl=leaf.random_key_impl,
    sharding=_sharding(slot, [axis for axis, _ in layers]),
  )


def _wanted_dtype(composed: Composed, place: Place, rules: Rules) -> str | None:
  """Returns the type that a leaf shall have; None: its own.

  Integers and quantized values keep theirs.
  """
  wanted = rules.dtype_at(place) or rules.dtypes.get(composed.key.role)
  spec = composed.slots[0].source.leaf.spec
  assert spec is not None
  if lora.is_quantized(composed.key.path) or not {wanted, spec.dtype} <= FLOATS:
    return None
  return wanted


def _write_shape(
  slot: Slot,
  layers: Sequence[tuple[int, int]],
  spec: ArraySpec,
  origin: Stored,
) -> tuple[int, ...]:
  """Returns the shape of a device's part, which chunks may subdivide."""
  shape = slot.source.leaf.write_shape
  if shape is None:
    return spec.chunk_shape
  if not slot.source_pins and not slot.target_pins:
    return shape
  pinned = {axis for axis, _ in slot.source_pins}
  result = [n for axis, n in enumerate(shape) if axis not in pinned]
  for axis, _ in layers:
    chunk = spec.chunk_shape[axis] if origin.way is Way.REWRITTEN else 1
    result.insert(axis, chunk)
  return tuple(result)


def _sharding(slot: Slot, axes: Sequence[int]) -> str:
  leaf = slot.source.leaf
  text = leaf.sharding
  if text is None or leaf.spec is None:
    return single_device_sharding()
  try:
    rank = leaf.spec.rank
    for axis, _ in sorted(slot.source_pins, reverse=True):
      text, rank = unstacked_sharding(text, axis), rank - 1
    for axis in axes:
      text, rank = stacked_sharding(text, axis, rank), rank + 1
  except CorruptCheckpointError as error:
    raise CorruptCheckpointError(
      f"{slot.source.item.directory}: {leaf.name}: {error}"
    ) from error
  return text


def extra_leaves(
  state: State, placed: Mapping[StateKey, TargetLeaf], rules: Rules
) -> Iterator[Placed]:
  """Yields the leaves that a rule gives: a step, counters, zeros, None.

  Args:
    state: What the target holds.
    placed: Its leaves that are stored, by what they are.
    rules: Of the target.
  """
  for extra in rules.layout.extras(state, rules.naming):
    item = extra.place.item
    if extra.zeros_like is not None:
      yield item, _zeros(extra, placed[extra.zeros_like], rules)
    elif not extra.dtype:
      origin = Derived(extra.rule, None)
      yield item, TargetLeaf(extra.place.path, None, origin)
    else:
      dtype = rules.dtype_at(extra.place) or extra.dtype
      yield item, _scalar(dataclasses.replace(extra, dtype=dtype), rules)


def derived_leaf(
  key: StateKey, shape: tuple[int, ...], origin: Derived, rules: Rules
) -> Placed | None:
  """Returns a leaf of derived uint32 values, in one chunk."""
  place = rules.layout.place(key, rules.naming)
  if place is None:
    return None
  storage = Storage(rules.zarr_format)
  chunk_shape = tuple(max(n, 1) for n in shape)
  spec = new_array(shape, "uint32", chunk_shape, storage)
  typed = any(stored.leaf.random_key_impl for stored in origin.sources)
  return place.item, TargetLeaf(
    path=place.path,
    spec=spec,
    origin=origin,
    write_shape=shape,
    random_key_impl=THREEFRY_IMPL if typed and key.path[-1] == "key" else None,
    sharding=single_device_sharding(),
  )


def _zeros(extra: Extra, like: TargetLeaf, rules: Rules) -> TargetLeaf:
  assert like.spec is not None
  spec = new_array(
    like.spec.shape,
    like.spec.dtype,
    tuple(max(n, 1) for n in like.spec.shape),
    Storage(rules.zarr_format, zstd_level=0, fill_value=0.0),
  )
  return TargetLeaf(
    path=extra.place.path,
    spec=spec,
    origin=Derived(extra.rule, None, is_zero=True),
    write_shape=spec.chunk_shape,
    sharding=like.sharding,
  )


def _scalar(extra: Extra, rules: Rules) -> TargetLeaf:
  """Returns a scalar; the very array that has the value, if there is one."""
  assert extra.value is not None
  low, high = _LIMITS.get(extra.dtype, (-float("inf"), float("inf")))
  if not low <= extra.value <= high:
    raise LayoutError(f"{extra.rule}: {extra.value} does not fit {extra.dtype}")
  stored = next((s for s in extra.sources if s.leaf.sharding), None)
  same = next((s for s in extra.sources if _holds(s, extra)), None)
  if same is not None:
    composed = Composed(StateKey(Role.STEP), (Slot(same),))
    assert same.leaf.spec is not None
    return leaf_at(
      extra.place, same.leaf.spec, Stored(composed.slots), composed
    )
  return TargetLeaf(
    path=extra.place.path,
    spec=scalar_array(extra.dtype, rules.zarr_format),
    origin=Derived(extra.rule, extra.value, extra.sources),
    sharding=(stored and stored.leaf.sharding) or single_device_sharding(),
  )


def _holds(stored: StoredLeaf, extra: Extra) -> bool:
  """Whether a stored array is just the scalar that is needed."""
  spec = stored.leaf.spec
  return (
    spec is not None
    and spec.shape == ()
    and spec.dtype == extra.dtype
    and not spec.dtype.startswith("float")
    and stored.read_int() == extra.value
  )
