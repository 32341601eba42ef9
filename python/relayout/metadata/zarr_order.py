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
  if spec.rank < 2:
    return True
  if spec.zarr_format == 2:
    return bool(spec.raw["order"] == "C")
  return not _transposes(spec.raw["codecs"], spec.rank)


def _byte_order_of(codecs: list[Any]) -> str:
  for codec in codecs:
    configuration = _configuration(codec)
    if _name(codec) == "bytes":
      return str(configuration.get("endian", "little"))
    if _name(codec) == "sharding_indexed":
      return _byte_order_of(configuration["codecs"])
  return "little"


def _transposes(codecs: list[Any], rank: int) -> bool:
  for codec in codecs:
    configuration = _configuration(codec)
    if _name(codec) == "transpose":
      order = configuration["order"]
      if order != "C" and order != list(range(rank)):
        return True
    if _name(codec) == "sharding_indexed":
      return _transposes(configuration["codecs"], rank)
  return False


def _name(codec: Any) -> str:
  return codec if isinstance(codec, str) else codec["name"]


def _configuration(codec: Any) -> Mapping[str, Any]:
  if isinstance(codec, str):
    return {}
  return codec.get("configuration") or {}
