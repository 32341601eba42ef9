"""Specs of arrays that hold a slice of another array, chunks unchanged.

The inverse of `zarr_stack`: chunks of length 1 along an axis hold the same
bytes without it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from relayout import errors
from relayout.metadata import zarr_axes, zarr_order
from relayout.tree.array_spec import ArraySpec


def remove_axes(spec: ArraySpec, axes: Sequence[int]) -> ArraySpec:
  """Returns the spec of an array like `spec`, at one index of each of `axes`.

  Args:
    spec: An array in C order whose chunks (and inner chunks) have length 1
      along `axes`.
    axes: Axes to take out, each `0 <= axis < rank` and named once.

  Returns:
    The spec of rank `spec.rank - len(axes)`; `raw` is the metadata to store.

  Raises:
    LayoutError: If a chunk is longer along one of `axes`, or its values are
      not in C order.
    ValueError: If `axes` are no axes of the array.
  """
  if len({*axes}) != len(axes) or any(
    not 0 <= axis < spec.rank for axis in axes
  ):
    raise ValueError(f"axes {list(axes)} of an array of rank {spec.rank}")
  for axis in axes:
    _check_length(spec, axis)
  _check_order(spec)

  def remove(values: Sequence[Any], _: Any = None) -> list[Any]:
    return [value for axis, value in enumerate(values) if axis not in axes]

  inner = spec.inner_chunk_shape
  return dataclasses.replace(
    spec,
    shape=tuple(remove(spec.shape)),
    chunk_shape=tuple(remove(spec.chunk_shape)),
    inner_chunk_shape=None if inner is None else tuple(remove(inner)),
    raw=zarr_axes.change_axes(spec.raw, remove),
  )


def _check_length(spec: ArraySpec, axis: int) -> None:
  """Refuses chunks that hold several indices of `axis`."""
  for what, shape in (
    ("inner chunks", spec.inner_chunk_shape),
    ("chunks", spec.chunk_shape),
  ):
    if shape is not None and shape[axis] != 1:
      raise errors.LayoutError(
        f"{what} of {list(shape)} have length {shape[axis]} along axis {axis},"
        " not 1, so they can't stand unchanged in arrays without that axis;"
        " rewrite the data"
      )


def _check_order(spec: ArraySpec) -> None:
  if not zarr_order.is_c_order(spec):
    raise errors.LayoutError(
      "chunks hold their values in another order than C (row-major); rewrite"
      " the data"
    )
  if spec.raw.get("filters"):
    raise errors.LayoutError(
      f"chunks pass through the filters {spec.raw['filters']}; rewrite the data"
    )
