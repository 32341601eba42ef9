"""Decides how the bytes of each target array come into the target.

The cheapest exact way is taken: chunks under new keys; else inner chunks of
zarr shards under keys of their own; else chunks that are written anew.
"""

import dataclasses
from collections.abc import Sequence

from relayout.convert import chunking
from relayout.convert.composition import Composed
from relayout.convert.compression import KEEP, Compression
from relayout.convert.plan import Pins, Slot, Stored, Way
from relayout.errors import LayoutError, RelayoutError
from relayout.metadata import zarr_order
from relayout.metadata.zarr_new import Storage, new_array
from relayout.metadata.zarr_stack import stack_array_specs
from relayout.metadata.zarr_unshard import unshard_array_spec
from relayout.metadata.zarr_unstack import remove_axes
from relayout.tree.array_spec import ArraySpec, bits_per_element


@dataclasses.dataclass(frozen=True, slots=True)
class Wishes:
  """What is asked of every array.

  Attributes:
    compression: How chunks are compressed.
    chunk_bytes: Most bytes of values in a chunk; None: as stored.
    single_layer_chunks: Whether chunks of a stack hold one layer each.
    memory_limit: Most bytes for buffers.
  """

  compression: Compression = KEEP
  chunk_bytes: int | None = None
  single_layer_chunks: bool = False
  memory_limit: int = 1 << 30


def choose(
  composed: Composed, dtype: str | None, wishes: Wishes
) -> tuple[ArraySpec, Stored]:
  """Returns the spec of a target array, and how it comes about.

  Args:
    composed: What it is made of.
    dtype: Data type that it shall have; None: that of the source.
    wishes: What else is asked of it.

  Raises:
    LayoutError: If its parts have different shapes or data types.
    UnsupportedError: If it must be rewritten and can't be decoded.
  """
  _check_parts(composed)
  reason = _reason_to_rewrite(composed, dtype, wishes)
  if not reason:
    try:
      return _rekeyed(composed, wishes)
    except _NeedsRewriteError as error:
      reason = str(error)
  return _rewritten(composed, dtype, wishes), Stored(
    composed.slots, Way.REWRITTEN, reason
  )


class _NeedsRewriteError(Exception):
  """The chunks can't stand unchanged in the target; says why."""


def _spec(slot: Slot) -> ArraySpec:
  assert slot.source.leaf.spec is not None
  return slot.source.leaf.spec


def _axes(pins: Pins) -> tuple[int, ...]:
  return tuple(axis for axis, _ in pins)


def part_shape(slot: Slot) -> tuple[int, ...]:
  """Returns the shape of the part of the source array that a slot takes."""
  return _without(_spec(slot).shape, _axes(slot.source_pins))


def _without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
  return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _check_parts(composed: Composed) -> None:
  first = composed.slots[0]
  for slot in composed.slots[1:]:
    for what, of in (("shape", part_shape), ("data type", _dtype)):
      if of(slot) != of(first):
        raise LayoutError(
          f"{slot.source.label}: {what} {of(slot)}, but {first.source.label} "
          f"has {of(first)}; layers of one stack are alike: check "
          "--model_name, or keep the layers with --scan_layers=keep"
        )


def _dtype(slot: Slot) -> str:
  return _spec(slot).dtype


def _reason_to_rewrite(
  composed: Composed, dtype: str | None, wishes: Wishes
) -> str:
  """Returns why chunks must be written anew because of what is asked for."""
  spec = _spec(composed.slots[0])
  if dtype not in (None, spec.dtype):
    return f"{spec.dtype} becomes {dtype}"
  for slot in composed.slots:
    if not wishes.compression.is_met_by(_spec(slot)):
      return "another compression is asked for"
  chunk = _stored_chunk(spec)
  itemsize = bits_per_element(spec.dtype) // 8
  if chunking.cut(chunk, itemsize, wishes.chunk_bytes) != chunk:
    return f"chunks of {list(chunk)} exceed --chunk_bytes"
  return ""


def _stored_chunk(spec: ArraySpec) -> tuple[int, ...]:
  """Returns the shape of what is encoded as one."""
  return spec.inner_chunk_shape or spec.chunk_shape


def _rekeyed(composed: Composed, wishes: Wishes) -> tuple[ArraySpec, Stored]:
  """Returns a spec over unchanged chunks.

  Raises:
    _NeedsRewriteError: If there is none.
  """
  slots = composed.slots
  pinned = sorted({axis for slot in slots for axis in _axes(slot.source_pins)})
  single = set(pinned)
  if wishes.single_layer_chunks and not any(s.target_pins for s in slots):
    single |= {axis for axis, _ in composed.layers}
  way = Way.REKEYED
  specs = [_spec(slot) for slot in slots]
  if any(_spans(spec.chunk_shape, spec.shape, single) for spec in specs):
    specs = [
      _unsharded(slot, spec, single)
      for slot, spec in zip(slots, specs, strict=True)
    ]
    way = Way.REKEYED_IN_SHARD
  try:
    parts = [remove_axes(spec, pinned) for spec in specs] if pinned else specs
    spec = _stacked(parts, composed) if slots[0].target_pins else parts[0]
  except LayoutError as error:
    raise _NeedsRewriteError(str(error)) from error
  return spec, Stored(slots, way)


def _spans(
  chunk_shape: Sequence[int], shape: Sequence[int], axes: set[int]
) -> int:
  """Returns how many layers a chunk spans along `axes`; 0 for a single one."""
  return next(
    (min(chunk_shape[a], shape[a]) for a in sorted(axes) if chunk_shape[a] > 1),
    0,
  )


def _unsharded(slot: Slot, spec: ArraySpec, single: set[int]) -> ArraySpec:
  """Returns the spec of the inner chunks, which must hold one layer each."""
  inner = spec.inner_chunk_shape
  layers = _spans(_stored_chunk(spec), spec.shape, single)
  if inner is None or layers:
    raise _NeedsRewriteError(f"chunks span {layers} layers")
  try:
    return unshard_array_spec(spec)
  except RelayoutError as error:
    raise _NeedsRewriteError(f"{slot.source.label}: {error}") from error


def _stacked(parts: Sequence[ArraySpec], composed: Composed) -> ArraySpec:
  labels = [slot.source.label for slot in composed.slots]
  stack_array_specs(parts, 0, labels)  # checks that they are alike
  spec = parts[0]
  for axis, length in sorted(composed.layers):
    spec = stack_array_specs([spec] * length, axis, labels[:1] * length)
  return spec


def _rewritten(
  composed: Composed, dtype: str | None, wishes: Wishes
) -> ArraySpec:
  """Returns the spec of an array whose chunks are written anew."""
  source = _spec(composed.slots[0])
  layers = dict(composed.layers) if composed.slots[0].target_pins else {}
  shape = _with_layers(part_shape(composed.slots[0]), layers)
  target_dtype = dtype or source.dtype
  chunk = _target_chunk(composed, layers, wishes)
  if wishes.single_layer_chunks:
    chunk = tuple(
      1 if axis in dict(composed.layers) else n for axis, n in enumerate(chunk)
    )
  itemsize = bits_per_element(target_dtype) // 8
  storage = Storage(
    zarr_format=source.zarr_format,
    zstd_level=wishes.compression.level_for(source),
    fill_value=source.raw.get("fill_value"),
  )
  return new_array(
    shape,
    target_dtype,
    chunking.cut(chunk, itemsize, wishes.chunk_bytes),
    storage,
  )


def _with_layers(
  shape: Sequence[int], layers: dict[int, int]
) -> tuple[int, ...]:
  result = list(shape)
  for axis in sorted(layers):
    result.insert(axis, layers[axis])
  return tuple(result)


def _target_chunk(
  composed: Composed, layers: dict[int, int], wishes: Wishes
) -> tuple[int, ...]:
  """Returns the part of a stored chunk that the target keeps together."""
  slot = composed.slots[0]
  spec = _spec(slot)
  block = [
    min(chunk, max(length, 1))
    for chunk, length in zip(_stored_chunk(spec), spec.shape, strict=True)
  ]
  itemsize = bits_per_element(spec.dtype) // 8
  limit = chunking.unit_bytes(wishes.memory_limit)
  order = zarr_order.axis_order(spec)
  part = chunking.slab(block, order, itemsize, limit)
  rest = _without(part, _axes(slot.source_pins))
  if not layers:
    return rest
  kept = dict.fromkeys(layers, 1)
  if slot.source_pins:
    by_source = sorted(_axes(slot.source_pins))
    kept = {
      axis: part[source_axis]
      for axis, source_axis in zip(sorted(layers), by_source, strict=True)
    }
  return _with_layers(rest, kept)
