"""Array metadata with axes put in or taken out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

type ChangeAxes = Callable[[Sequence[Any], Any], list[Any]]
"""Takes a value an axis, and the value that a new axis has; returns the values
of the axes afterwards."""


def change_axes(
  raw: Mapping[str, Any], change: ChangeAxes, new_length: int = 1
) -> dict[str, Any]:
  """Returns array metadata with other axes over the same chunks.

  Args:
    raw: Metadata of an array in C order, without filters.
    change: Puts in or takes out axes along which chunks have length 1.
    new_length: Length of the array along each axis that is put in.
  """
  result = {**raw, "shape": change(raw["shape"], new_length)}
  if raw["zarr_format"] == 2:
    return result | {"chunks": change(raw["chunks"], 1), "order": "C"}
  chunk_shape = raw["chunk_grid"]["configuration"]["chunk_shape"]
  result["chunk_grid"] = {
    "name": "regular",
    "configuration": {"chunk_shape": change(chunk_shape, 1)},
  }
  result["codecs"] = _change_codecs(raw["codecs"], change)
  if raw.get("dimension_names") is not None:
    result["dimension_names"] = change(raw["dimension_names"], None)
  return result


def _change_codecs(codecs: Sequence[Any], change: ChangeAxes) -> list[Any]:
  result = []
  for codec in codecs:
    name = codec if isinstance(codec, str) else codec["name"]
    if name == "transpose":
      continue  # an identity, as the array is in C order
    if name == "sharding_indexed":
      inner = dict(codec["configuration"])
      inner["chunk_shape"] = change(inner["chunk_shape"], 1)
      inner["codecs"] = _change_codecs(inner["codecs"], change)
      result.append({**codec, "configuration": inner})
    else:
      result.append(codec)
  return result
