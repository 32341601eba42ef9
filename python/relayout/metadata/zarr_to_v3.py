"""Metadata of zarr v3 over the stored chunks of a zarr v2 array."""

from collections.abc import Callable, Mapping
from typing import Any

from relayout import errors
from relayout.metadata import zarr_order
from relayout.tree.array_spec import ArraySpec, bits_per_element

_SHUFFLES = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_AUTO_SHUFFLE = -1
_BLOSC_NAMES = frozenset({"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"})
_MAX_ZSTD_LEVEL = 22
_MAX_GZIP_LEVEL = 9

type _Codec = dict[str, Any]


def to_zarr3(spec: ArraySpec) -> ArraySpec:
  """Returns the spec of zarr v3 whose chunks are, byte for byte, those of v2.

  Chunk keys are those of zarr v3 (`c/0/1`), so the chunks need new keys.  A
  fill value that is not defined becomes 0.  A spec of v3 comes back unchanged.

  Raises:
    UnsupportedError: If zarr v3 has no codecs that read the chunks: they pass
      through filters, or a compressor other than zstd, gzip and blosc.
  """
  if spec.zarr_format == 3:
    return spec
  raw = {
    "chunk_grid": {
      "name": "regular",
      "configuration": {"chunk_shape": list(spec.chunk_shape)},
    },
    "chunk_key_encoding": {"name": "default"},
    "codecs": _codecs(spec),
    "data_type": spec.dtype,
    "fill_value": _fill_value(spec),
    "node_type": "array",
    "shape": list(spec.shape),
    "zarr_format": 3,
  }
  return ArraySpec(
    shape=spec.shape,
    dtype=spec.dtype,
    chunk_shape=spec.chunk_shape,
    inner_chunk_shape=None,
    zarr_format=3,
    key_style="default",
    key_separator="/",
    raw=raw,
  )


def _codecs(spec: ArraySpec) -> list[_Codec]:
  if spec.raw.get("filters"):
    raise errors.UnsupportedError(
      f"chunks pass through the filters {spec.raw['filters']}, which zarr v3"
      " has not; rewrite the data"
    )
  codecs: list[_Codec] = []
  if not zarr_order.is_c_order(spec):
    order = list(reversed(range(spec.rank)))
    codecs.append({"name": "transpose", "configuration": {"order": order}})
  codecs.append(_bytes_codec(spec))
  compressor = spec.raw.get("compressor")
  if compressor is not None:
    codecs.append(_compressor(compressor, spec))
  return codecs


def _bytes_codec(spec: ArraySpec) -> _Codec:
  if bits_per_element(spec.dtype) == 8:
    return {"name": "bytes"}
  endian = zarr_order.byte_order(spec)
  return {"name": "bytes", "configuration": {"endian": endian}}


def _compressor(compressor: Mapping[str, Any], spec: ArraySpec) -> _Codec:
  make = _COMPRESSORS.get(compressor["id"])
  if make is None:
    raise errors.UnsupportedError(
      f"the compressor {compressor['id'][:40]!r} has no equivalent in zarr v3;"
      " rewrite the data"
    )
  name = compressor["id"]
  return {"name": name, "configuration": make(compressor, spec)}


def _zstd(compressor: Mapping[str, Any], _: ArraySpec) -> dict[str, Any]:
  level = _integer(compressor, "level", 1)
  return {
    "level": level if level <= _MAX_ZSTD_LEVEL else 1,
    "checksum": compressor.get("checksum") is True,
  }


def _gzip(compressor: Mapping[str, Any], _: ArraySpec) -> dict[str, Any]:
  level = _integer(compressor, "level", 1)
  return {"level": level if 0 <= level <= _MAX_GZIP_LEVEL else 1}


def _blosc(compressor: Mapping[str, Any], spec: ArraySpec) -> dict[str, Any]:
  """Returns what a writer would use; a chunk itself tells how to read it."""
  name = compressor.get("cname", "lz4")
  if name not in _BLOSC_NAMES:
    raise errors.UnsupportedError(
      f"blosc with the compressor {str(name)[:40]!r}; rewrite the data"
    )
  num_bytes = bits_per_element(spec.dtype) // 8
  shuffle = _integer(compressor, "shuffle", 1)
  if shuffle == _AUTO_SHUFFLE:
    shuffle = 2 if num_bytes == 1 else 1
  return {
    "cname": name,
    "clevel": min(max(_integer(compressor, "clevel", 5), 0), 9),
    "shuffle": _SHUFFLES.get(shuffle, "noshuffle"),
    "typesize": num_bytes,
    "blocksize": 0,
  }


_COMPRESSORS: dict[
  str, Callable[[Mapping[str, Any], ArraySpec], dict[str, Any]]
] = {"zstd": _zstd, "gzip": _gzip, "blosc": _blosc}


def _integer(configuration: Mapping[str, Any], key: str, default: int) -> int:
  """Returns a setting of the writer, which readers don't need."""
  value = configuration.get(key)
  return value if type(value) is int else default


def _fill_value(spec: ArraySpec) -> Any:
  value = spec.raw.get("fill_value")
  is_complex = spec.dtype.startswith("complex")
  if spec.dtype == "bool":
    return bool(value)
  if is_complex and not isinstance(value, list):
    return [value or 0.0, 0.0]
  if value is None:
    return 0.0 if "float" in spec.dtype else 0
  if isinstance(value, float) and "int" in spec.dtype and value.is_integer():
    return int(value)
  return value
