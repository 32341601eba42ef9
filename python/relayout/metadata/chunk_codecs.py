"""From the stored bytes of a chunk to those of its values."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from relayout import _native, errors
from relayout.tree.array_spec import ArraySpec

_CHECKSUM_BYTES = 4


def decode_chunk(
  spec: ArraySpec, data: bytes, element_bytes: int, name: str
) -> list[bytes | None]:
  """Returns the decoded bytes of each inner chunk, None for an absent one.

  A chunk that is no zarr shard is its only inner chunk.

  Args:
    spec: The array.
    data: The stored chunk.
    element_bytes: Bytes of one element.
    name: Names the array in messages.

  Raises:
    CorruptCheckpointError: If `data` is not what the codecs produce.
    UnsupportedError: If it takes a codec that is not decoded here.
  """
  if spec.zarr_format == 2:
    codecs = _codecs_of_v2(spec.raw)
  else:
    codecs = [_split(codec) for codec in spec.raw["codecs"]]
  num_bytes = math.prod(spec.chunk_shape) * element_bytes
  for i, (codec, configuration) in enumerate(codecs):
    if codec == "sharding_indexed":
      if i + 1 < len(codecs):
        raise _unsupported("a codec after sharding_indexed", name)
      return _decode_shard(configuration, spec, data, element_bytes, name)
  return [_decode_bytes(codecs, data, num_bytes, name)]


type _Codec = tuple[str, Mapping[str, Any]]


def _codecs_of_v2(raw: Mapping[str, Any]) -> list[_Codec]:
  """Returns the chain in the order of encoding."""
  chain = [*(raw.get("filters") or []), raw.get("compressor")]
  return [(codec["id"], codec) for codec in chain if codec is not None]


def _split(codec: Any) -> _Codec:
  if isinstance(codec, str):
    return codec, {}
  return codec["name"], codec.get("configuration") or {}


def _decode_shard(
  configuration: Mapping[str, Any],
  spec: ArraySpec,
  data: bytes,
  element_bytes: int,
  name: str,
) -> list[bytes | None]:
  inner_shape = configuration["chunk_shape"]
  num_chunks = math.prod(spec.chunk_shape) // math.prod(inner_shape)
  codecs = [_split(codec) for codec in configuration["codecs"]]
  if any(codec == "sharding_indexed" for codec, _ in codecs):
    raise _unsupported("sharding_indexed within sharding_indexed", name)
  num_bytes = math.prod(inner_shape) * element_bytes
  result: list[bytes | None] = []
  for entry in _shard_index(configuration, data, num_chunks, name):
    if entry is None:
      result.append(None)
      continue
    offset, length = entry
    part = data[offset : offset + length]
    result.append(_decode_bytes(codecs, part, num_bytes, name))
  return result


def _shard_index(
  configuration: Mapping[str, Any], data: bytes, num_chunks: int, name: str
) -> Sequence[tuple[int, int] | None]:
  """Returns offset and length of each inner chunk, None for an absent one."""
  codecs = [_split(codec) for codec in configuration["index_codecs"]]
  names = [codec for codec, _ in codecs]
  if names not in (["bytes"], ["bytes", "crc32c"]):
    raise _unsupported(f"a shard index encoded by {names}", name)
  if codecs[0][1].get("endian", "little") != "little":
    raise _unsupported("a big-endian shard index", name)
  try:
    return _native.decode_shard_index(
      data,
      num_chunks=num_chunks,
      checksum=names[-1] == "crc32c",
      at_end=configuration.get("index_location") != "start",
    )
  except errors.CorruptCheckpointError as error:
    raise errors.CorruptCheckpointError(f"{name}: {error}") from error


def _decode_bytes(
  codecs: Sequence[_Codec], data: bytes, num_bytes: int, name: str
) -> bytes:
  """Undoes `codecs`; the result must have `num_bytes`."""
  limit = 2 * num_bytes + 1024  # of intermediate results
  for codec, _ in reversed(codecs):
    data = _decode_one(codec, data, limit, name)
  if len(data) != num_bytes:
    raise errors.CorruptCheckpointError(
      f"{name}: a chunk has {len(data)} bytes of values, not {num_bytes}"
    )
  return data


def _decode_one(codec: str, data: bytes, limit: int, name: str) -> bytes:
  """Undoes one codec; the result has at most `limit` bytes."""
  match codec:
    case "bytes" | "transpose":  # order and byte order are the caller's
      return data
    case "zstd":
      return _unzstd(data, limit, name)
    case "gzip" | "zlib":
      return _inflate(data, limit, name)
    case "crc32c":
      return _checked(data, name)
  raise _unsupported(f"the codec {codec[:40]!r}", name)


def _unzstd(data: bytes, limit: int, name: str) -> bytes:
  try:
    return _native.zstd_decompress(data, max_num_bytes=limit)
  except errors.CorruptCheckpointError as error:
    raise errors.CorruptCheckpointError(f"{name}: {error}") from error


def _inflate(data: bytes, limit: int, name: str) -> bytes:
  decoder = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)  # gzip or zlib
  try:
    result = decoder.decompress(data, limit + 1)
  except zlib.error as error:
    raise errors.CorruptCheckpointError(
      f"{name}: a chunk is not valid gzip ({error})"
    ) from error
  if not decoder.eof:
    raise errors.CorruptCheckpointError(
      f"{name}: a gzip chunk is cut short, or holds more than {limit} bytes"
    )
  return result


def _checked(data: bytes, name: str) -> bytes:
  """Returns `data` without the CRC-32C at its end, which must hold."""
  body, stored = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
  if len(stored) < _CHECKSUM_BYTES or (
    _native.crc32c(body) != int.from_bytes(stored, "little")
  ):
    raise errors.CorruptCheckpointError(
      f"{name}: a chunk's checksum is wrong; the data is damaged"
    )
  return body


def _unsupported(what: str, name: str) -> errors.UnsupportedError:
  return errors.UnsupportedError(
    f"{name}: {what} is not decoded one by one; rewrite the array with the"
    " codecs bytes and zstd"
  )
