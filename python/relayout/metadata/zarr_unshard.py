"""The ordinary array that the inner chunks of zarr shards form.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from relayout import _native, errors
from relayout.tree.array_spec import ArraySpec


def unshard_array_spec(spec: ArraySpec) -> ArraySpec:
  """Returns the spec of the array whose chunks are the inner ones of `spec`.

  Its key format is that of `spec`; `raw` is the metadata to store.

  Raises:
    LayoutError: If `spec` has no zarr shards.
    UnsupportedError: If inner chunks are not ranges of the stored shards: a
      codec stands before or behind `sharding_indexed`, or one within another.
  """
  configuration = _sharding(spec)
  inner = spec.inner_chunk_shape
  assert inner is not None
  raw = dict(spec.raw)
  raw["codecs"] = configuration["codecs"]
  raw["chunk_grid"] = {
    "name": "regular",
    "configuration": {"chunk_shape": list(inner)},
  }
  return dataclasses.replace(
    spec, chunk_shape=inner, inner_chunk_shape=None, raw=raw
  )


def sharded_array(
  name: str, spec: ArraySpec, metadata: bytes
) -> _native.ShardedArray:
  """Returns what `_native.flatten_shards` takes for the array `spec`.

  Args:
    name: Its name in the store.
    spec: An array with zarr shards.
    metadata: What stands for it in the result: that of `unshard_array_spec`.

  Raises:
    LayoutError: As `unshard_array_spec`.
    UnsupportedError: As `unshard_array_spec`, or the index of shards is encoded
      in a way that relayout doesn't read.
  """
  configuration = _sharding(spec)
  flat = unshard_array_spec(spec)
  per_shard = [
    whole // part
    for whole, part in zip(spec.chunk_shape, flat.chunk_shape, strict=True)
  ]
  return _native.ShardedArray(
    name,
    _native.ChunkKeyFormat(spec.key_style, spec.key_separator),
    list(spec.grid),
    per_shard,
    list(flat.grid),
    checksum=_index_has_checksum(configuration),
    at_end=configuration.get("index_location", "end") != "start",
    metadata=metadata,
  )


def _sharding(spec: ArraySpec) -> Mapping[str, Any]:
  """Returns the configuration of the one codec, which makes zarr shards."""
  if spec.zarr_format != 3 or spec.inner_chunk_shape is None:
    raise errors.LayoutError(
      f"chunks of {list(spec.chunk_shape)} are no zarr shards"
    )
  names = [_split(codec)[0] for codec in spec.raw["codecs"]]
  if names != ["sharding_indexed"]:
    raise errors.UnsupportedError(
      f"zarr shards that pass through {names}; relayout takes inner chunks out"
      " only where sharding_indexed stands alone"
    )
  _, configuration = _split(spec.raw["codecs"][0])
  inner = [_split(codec)[0] for codec in configuration["codecs"]]
  if "sharding_indexed" in inner:
    raise errors.UnsupportedError(
      "zarr shards within zarr shards; relayout takes out inner chunks of one"
      " level only"
    )
  return configuration


def _index_has_checksum(configuration: Mapping[str, Any]) -> bool:
  codecs = [_split(codec) for codec in configuration["index_codecs"]]
  names = [name for name, _ in codecs]
  if names not in (["bytes"], ["bytes", "crc32c"]):
    raise errors.UnsupportedError(
      f"a shard index encoded by {names}; relayout reads bytes, and crc32c"
      " behind it"
    )
  if codecs[0][1].get("endian", "little") != "little":
    raise errors.UnsupportedError("a big-endian shard index")
  return names[-1] == "crc32c"


def _split(codec: Any) -> tuple[str, Mapping[str, Any]]:
  """Returns the name of a codec and its configuration."""
  if isinstance(codec, str):
    return codec, {}
  return codec["name"], codec.get("configuration") or {}
