"""`_sharding`: the device layout that each `jax.Array` was saved with.

A reader that names no target layout takes it from here, and fails without.
"""

import base64
import binascii
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from relayout import errors
from relayout.metadata import safe_json
from relayout.metadata.json_value import JsonValue

FILE_NAME = "_sharding"

_TYPES = frozenset(
  {
    "NamedSharding",
    "SingleDeviceSharding",
    "PositionalSharding",
    "GSPMDSharding",
  }
)
"""Kinds that Orbax 0.12.8 can restore, and the one it writes besides."""


def read_shardings(item: pathlib.Path) -> dict[str, str] | None:
  """Returns the file's text for each array by name; None without a file.

  Raises:
    CorruptCheckpointError: If the file is damaged.
  """
  path = item / FILE_NAME
  try:
    data = safe_json.read_bytes(path)
  except FileNotFoundError:
    return None
  return parse_shardings(data, str(path))


def parse_shardings(data: bytes, source: str) -> dict[str, str]:
  """Returns the text for each array, by its name, from the file's bytes.

  Raises:
    CorruptCheckpointError: If the bytes or a text are not what Orbax writes.
  """
  root = JsonValue(safe_json.loads(data, source), source)
  result: dict[str, str] = {}
  checked: set[str] = set()  # arrays often share a text
  for key, value in root.items():
    name = _decode_name(key)
    if name is None:
      value.fail("a key that is the base64 of an array's name, for")
    text = value.text()
    if text not in checked:
      _check_text(text, f"{source}: {name}")
      checked.add(text)
    result[name] = text
  return result


def _check_text(text: str, where: str) -> None:
  """Checks what a reader without a target would stumble over."""
  value = JsonValue(safe_json.loads(text.encode("utf-8"), where), where)
  kind = value["sharding_type"].text()
  if kind not in _TYPES:
    raise errors.CorruptCheckpointError(
      f"{where}: unknown sharding_type {kind!r}; the file is damaged, or newer"
      f" than this program: without the file {FILE_NAME} the checkpoint can be"
      " read all the same"
    )
  spec = value.get("partition_spec")
  if spec is not None:
    spec.elements()


def shardings_bytes(shardings: Mapping[str, str]) -> bytes:
  """Returns the bytes of the file, laid out as Orbax does."""
  value = {
    base64.urlsafe_b64encode(name.encode("utf-8")).decode("ascii"): text
    for name, text in sorted(shardings.items())
  }
  return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(
    "utf-8"
  )


def stacked_sharding(text: str, axis: int, rank: int) -> str:
  """Returns the sharding of an array that gains an axis, which is not split.

  Args:
    text: Sharding of an array of `rank` axes; one without a partition spec (a
      single device) holds for any rank and comes back unchanged.
    axis: Axis of the new dimension, `0 <= axis <= rank`.
    rank: Rank before.

  Raises:
    CorruptCheckpointError: If `text` is no sharding of that rank.
  """
  if not 0 <= axis <= rank:
    raise ValueError(f"axis {axis} of an array of rank {rank}")

  def insert(spec: list[Any]) -> list[Any]:
    if len(spec) > rank:
      raise errors.CorruptCheckpointError(
        f"_sharding: partition_spec {spec} of an array of rank {rank}"
      )
    if not any(spec[axis:]):
      return spec  # axes beyond the end of the spec are not split
    return [*spec[:axis], None, *spec[axis:]]

  return _with_spec(text, insert)


def unstacked_sharding(text: str, axis: int) -> str:
  """Returns the sharding of an array that loses `axis`.

  If the axis was split over devices, the parts no longer are.

  Raises:
    CorruptCheckpointError: If `text` is no sharding.
  """
  return _with_spec(text, lambda spec: [*spec[:axis], *spec[axis + 1 :]])


def single_device_sharding() -> str:
  """Returns a made-up sharding: everything on the first device.

  A `SingleDeviceSharding` would name the kind of device (`cpu:0`), which a
  reader on another kind doesn't have.  This names device 0 by its number, as a
  mesh of one, so it holds on CPU, GPU and TPU and however many devices there
  are.  Axis types are left out, so that the reader's JAX fills in its default.
  """
  return json.dumps(
    {
      "sharding_type": "NamedSharding",
      "shape": [1],
      "axis_names": ["device"],
      "partition_spec": [],
      "device_mesh": {"mesh": [{"id": 0}]},
    }
  )


def _decode_name(key: str) -> str | None:
  try:
    data = base64.b64decode(key.encode("ascii"), altchars=b"-_", validate=True)
    return data.decode("utf-8")
  except (UnicodeError, binascii.Error):
    return None


def _with_spec(text: str, change: Callable[[list[Any]], list[Any]]) -> str:
  """Returns `text` with its partition spec changed, if it has one."""
  value = JsonValue(safe_json.loads(text.encode("utf-8"), FILE_NAME), FILE_NAME)
  spec = value.get("partition_spec")
  if spec is None:
    return text
  spec.elements()
  return json.dumps({**value.members(), "partition_spec": change(spec.value)})
