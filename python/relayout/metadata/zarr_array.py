"""Metadata of one zarr array: parsed, and written in canonical form."""

import json

from relayout import errors
from relayout.metadata import safe_json, zarr_fill, zarr_v2, zarr_v3
from relayout.metadata.json_value import JsonValue
from relayout.tree.array_spec import ArraySpec

METADATA_KEYS = (".zarray", "zarr.json")
"""Store keys of the metadata of an array, below its name."""

_MAX_NUM_BYTES = 1 << 20


def parse_array_metadata(metadata_key: str, data: bytes) -> ArraySpec:
  """Returns the spec of the array whose metadata is `data`.

  Args:
    metadata_key: Store key, `<name>/.zarray` or `<name>/zarr.json`; its end
      decides the version, all of it names the array in messages.
    data: The JSON, as stored.

  Raises:
    CorruptCheckpointError: If `data` is not the metadata of an array.
    UnsupportedError: If the array is of a kind that relayout doesn't know.
  """
  if len(data) > _MAX_NUM_BYTES:
    raise errors.CorruptCheckpointError(
      f"{metadata_key}: {len(data)} bytes, more than array metadata can have"
    )
  value = JsonValue(safe_json.loads(data, metadata_key), metadata_key)
  key = metadata_key.rpartition("/")[2]
  if key == ".zarray":
    return zarr_v2.parse(value)
  if key == "zarr.json":
    return zarr_v3.parse(value)
  raise errors.UnsupportedError(
    f"{metadata_key}: relayout knows .zarray and zarr.json"
  )


def array_metadata_bytes(spec: ArraySpec) -> bytes:
  """Returns `spec.raw` as TensorStore writes it: compact, keys sorted."""
  raw = dict(spec.raw)
  raw["fill_value"] = zarr_fill.spelled(raw.get("fill_value"))
  text = json.dumps(
    raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False
  )
  return text.encode("utf-8")
