"""In which order a chunk holds values, and a value its bytes."""

from collections.abc import Mapping
from typing import Any

from relayout.tree.array_spec import ArraySpec, bits_per_element


def byte_order(spec: ArraySpec) -> str:
  """Returns the byte order of the values in chunks.

  Returns:
    `little` or `big`; `little` also for one-byte types.
  """
  if bits_per_element(spec.dtype) <= 8:
    return "little"
  if spec.zarr_format == 2:
    return "big" if spec.raw["dtype"].startswith(">") else "little"
  return _byte_order_of(spec.raw["codecs"])


def is_c_order(spec: ArraySpec) -> bool:
  """Returns whether each (inner) chunk holds its values in C order."""
  return axis_order(spec) == tuple(range(spec.rank))


def axis_order(spec: ArraySpec) -> tuple[int, ...]:
  """Returns the axes of an (inner) chunk in memory, the slowest first."""
  axes = tuple(range(spec.rank))
  if spec.zarr_format == 2:
    return axes if spec.raw["order"] == "C" else axes[::-1]
  return _transposed(spec.raw["codecs"], axes)


def _transposed(codecs: list[Any], axes: tuple[int, ...]) -> tuple[int, ...]:
  for codec in codecs:
    configuration = _configuration(codec)
    if _name(codec) == "transpose":
      order = configuration["order"]
      if order == "F":
        axes = axes[::-1]
      elif order != "C":
        axes = tuple(axes[i] for i in order)
    if _name(codec) == "sharding_indexed":
      return _transposed(configuration["codecs"], axes)
  return axes


def _byte_order_of(codecs: list[Any]) -> str:
  for codec in codecs:
    configuration = _configuration(codec)
    if _name(codec) == "bytes":
      return str(configuration.get("endian", "little"))
    if _name(codec) == "sharding_indexed":
      return _byte_order_of(configuration["codecs"])
  return "little"


def _name(codec: Any) -> str:
  return codec if isinstance(codec, str) else codec["name"]


def _configuration(codec: Any) -> Mapping[str, Any]:
  if isinstance(codec, str):
    return {}
  return codec.get("configuration") or {}
