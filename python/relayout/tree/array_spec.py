"""What an array's own metadata says of it, apart from its values."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal


@dataclasses.dataclass(frozen=True, slots=True)
class ArraySpec:
  """One zarr array.

  Attributes:
    shape: Length of each axis.
    dtype: NumPy or ml_dtypes name, such as `float32`, `bfloat16`, `int4`.
    chunk_shape: Shape of a stored chunk: in zarr v3 with `sharding_indexed`,
      of a whole zarr shard.
    inner_chunk_shape: Shape of the inner chunks of a zarr shard, or None.
    zarr_format: 2 or 3.
    key_style: How chunk keys are spelled: `v2` ("0.1") or `default` ("c/0/1").
    key_separator: `.` or `/`.
    raw: The metadata as stored, parsed from JSON.
  """

  shape: tuple[int, ...]
  dtype: str
  chunk_shape: tuple[int, ...]
  inner_chunk_shape: tuple[int, ...] | None
  zarr_format: Literal[2, 3]
  key_style: Literal["v2", "default"]
  key_separator: str
  raw: Mapping[str, Any] = dataclasses.field(repr=False, hash=False)

  @property
  def rank(self) -> int:
    """Number of axes."""
    return len(self.shape)

  @property
  def num_elements(self) -> int:
    """Number of elements; 0 for a zero-size array."""
    return math.prod(self.shape)

  @property
  def num_bytes(self) -> int:
    """Size of the values in memory, bytes."""
    return self.num_elements * bits_per_element(self.dtype) // 8

  @property
  def grid(self) -> tuple[int, ...]:
    """Number of stored chunks along each axis."""
    return tuple(
      -(-length // chunk)
      for length, chunk in zip(self.shape, self.chunk_shape, strict=True)
    )

  @property
  def metadata_key(self) -> str:
    """Store key of the metadata, below the array's name."""
    return ".zarray" if self.zarr_format == 2 else "zarr.json"


def bits_per_element(dtype: str) -> int:
  """Returns the width of `dtype` in bits, by its name.

  In memory and in a chunk before compression: NumPy and TensorStore give every
  element of a type narrower than a byte a byte of its own.

  Raises:
    ValueError: If the name holds no width.
  """
  if dtype == "bool":
    return 8
  family = dtype.partition("_")[0]  # `float8` of `float8_e4m3fn`
  digits = family[len(family.rstrip("0123456789")) :]
  if not digits:
    raise ValueError(f"data type {dtype!r} has no known width")
  return max(8, int(digits))
