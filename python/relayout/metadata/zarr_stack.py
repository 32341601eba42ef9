"""Specs of arrays that hold the chunks of several arrays, unchanged.

A chunk of shape `[a, b]` and one of shape `[a, 1, b]` hold the same bytes in C
order.  So arrays alike in everything that decides the bytes of a chunk stack
by new metadata alone, with chunk length 1 on the new axis.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from relayout import errors
from relayout.metadata import zarr_axes, zarr_order
from relayout.tree.array_spec import ArraySpec

_REMEDY = (
  "their chunks can't stand unchanged in one array; rewrite the data, or check"
  " that these layers belong to one stack"
)


def stack_array_specs(
  specs: Sequence[ArraySpec], axis: int, names: Sequence[str]
) -> ArraySpec:
  """Returns the spec of the array that stacks those of `specs` along `axis`.

  Its shape has `len(specs)` at `axis`, its chunk shape (and inner chunk shape)
  1.  `raw` is the metadata to store.

  Args:
    specs: Arrays, index 0 first.
    axis: Axis of the new dimension, `0 <= axis <= rank`.
    names: Name of each array, for messages.

  Raises:
    LayoutError: If the arrays differ in shape, chunk shape, data type, byte
      order, fill value, codecs (levels aside) or form of chunk keys, or do not
      hold their values in C order.
    ValueError: If `specs` is empty or `axis` out of bounds.
  """
  if not specs or len(names) != len(specs):
    raise ValueError(f"{len(specs)} arrays to stack under {len(names)} names")
  first = specs[0]
  if not 0 <= axis <= first.rank:
    raise ValueError(f"axis {axis} of stacked arrays of rank {first.rank}")
  _check_alike(specs, names)
  for spec, name in zip(specs, names, strict=True):
    _check_stackable(spec, name)
  inner = first.inner_chunk_shape
  return dataclasses.replace(
    first,
    shape=tuple(_insert(first.shape, axis, len(specs))),
    chunk_shape=tuple(_insert(first.chunk_shape, axis, 1)),
    inner_chunk_shape=None if inner is None else tuple(_insert(inner, axis, 1)),
    raw=_stack_raw(specs, axis),
  )


def _check_alike(specs: Sequence[ArraySpec], names: Sequence[str]) -> None:
  expected = _essentials(specs[0])
  for spec, name in zip(specs[1:], names[1:], strict=True):
    if spec == specs[0]:
      continue
    found = _essentials(spec)
    for aspect, value in expected.items():
      if found.get(aspect) != value:
        raise errors.LayoutError(
          f"{name}: {aspect} {found.get(aspect)}, but {names[0]} has {value};"
          f" {_REMEDY}"
        )


def _check_stackable(spec: ArraySpec, name: str) -> None:
  if not zarr_order.is_c_order(spec):
    raise errors.LayoutError(
      f"{name}: chunks hold their values in another order than C (row-major);"
      f" {_REMEDY}"
    )
  if spec.raw.get("filters"):
    raise errors.LayoutError(
      f"{name}: chunks pass through the filters {spec.raw['filters']};"
      f" {_REMEDY}"
    )


def _essentials(spec: ArraySpec) -> dict[str, Any]:
  """Returns all that decides what a chunk's bytes mean, by its name."""
  result: dict[str, Any] = {
    "zarr version": spec.zarr_format,
    "shape": list(spec.shape),
    "data type": spec.dtype,
    "byte order": zarr_order.byte_order(spec),
    "chunk shape": list(spec.chunk_shape),
    "inner chunk shape": spec.inner_chunk_shape,
    "chunk keys": f"{spec.key_style}, separated by {spec.key_separator!r}",
    "fill value": _canonical_fill(spec),
  }
  if spec.zarr_format == 2:
    result["compressor"] = _canonical(spec.raw.get("compressor"))
    result["filters"] = _canonical(spec.raw.get("filters") or None)
  else:
    result["codecs"] = _canonical(spec.raw["codecs"])
  return result


def _canonical(codecs: Any) -> str:
  """Returns a text equal for codecs that decode alike."""
  return json.dumps(_without_levels(codecs), sort_keys=True)


def _without_levels(codecs: Any) -> Any:
  """Drops what a frame of zstd or gzip says itself."""
  if isinstance(codecs, list):
    return [_without_levels(codec) for codec in codecs]
  if not isinstance(codecs, dict):
    return codecs
  if codecs.get("id") in ("zstd", "gzip", "zlib"):
    return {"id": codecs["id"]}
  if codecs.get("name") in ("zstd", "gzip"):
    return {"name": codecs["name"]}
  return {key: _without_levels(value) for key, value in codecs.items()}


def _canonical_fill(spec: ArraySpec) -> str:
  value = spec.raw.get("fill_value")
  if spec.dtype.startswith(("float", "bfloat")) and type(value) is int:
    value = float(value)
  return json.dumps(value)


def _insert(values: Sequence[Any], axis: int, new: Any) -> list[Any]:
  return [*values[:axis], new, *values[axis:]]


def _stack_raw(specs: Sequence[ArraySpec], axis: int) -> dict[str, Any]:
  raw = dict(specs[0].raw)
  if specs[0].zarr_format == 3:
    for key in ("attributes", "dimension_names"):
      if any(spec.raw.get(key) != raw.get(key) for spec in specs):
        raw.pop(key, None)
  return zarr_axes.change_axes(
    raw, lambda values, new: _insert(values, axis, new), len(specs)
  )
