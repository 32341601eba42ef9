"""Specs of arrays, parsed from metadata as programs write it."""

import json
from collections.abc import Sequence
from typing import Any

from relayout.metadata import zarr_array
from relayout.tree.array_spec import ArraySpec

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


def parse(key: str, metadata: dict[str, Any]) -> ArraySpec:
  """Returns the spec that `metadata` describes."""
  return zarr_array.parse_array_metadata(key, json.dumps(metadata).encode())


def spec_of_v2(
  shape: Sequence[int], chunks: Sequence[int], **changes: Any
) -> ArraySpec:
  """Returns a float32 array of zarr v2; `changes` to its metadata."""
  metadata = {
    "chunks": list(chunks),
    "compressor": {"id": "zstd", "level": 1},
    "dimension_separator": ".",
    "dtype": "<f4",
    "fill_value": None,
    "filters": None,
    "order": "C",
    "shape": list(shape),
    "zarr_format": 2,
  }
  return parse(".zarray", metadata | changes)


def sharding(
  inner: Sequence[int],
  codecs: Sequence[Any] = (BYTES, ZSTD),
  index_codecs: Sequence[Any] = (BYTES, {"name": "crc32c"}),
  index_location: str = "end",
) -> dict[str, Any]:
  """Returns the codec of zarr shards with chunks of shape `inner`."""
  return {
    "name": "sharding_indexed",
    "configuration": {
      "chunk_shape": list(inner),
      "codecs": list(codecs),
      "index_codecs": list(index_codecs),
      "index_location": index_location,
    },
  }


def spec_of_v3(
  shape: Sequence[int],
  chunks: Sequence[int],
  inner: Sequence[int] | None = None,
  **changes: Any,
) -> ArraySpec:
  """Returns a float32 array of zarr v3; `changes` to its metadata."""
  grid = {"chunk_shape": list(chunks)}
  metadata = {
    "chunk_grid": {"name": "regular", "configuration": grid},
    "chunk_key_encoding": {"name": "default"},
    "codecs": [BYTES, ZSTD] if inner is None else [sharding(inner)],
    "data_type": "float32",
    "fill_value": 0.0,
    "node_type": "array",
    "shape": list(shape),
    "zarr_format": 3,
  }
  return parse("zarr.json", metadata | changes)
