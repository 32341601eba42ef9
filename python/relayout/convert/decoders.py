"""Decoders of single chunks: codecs of zarr v2 and v3 by name.

Those of the standard library and of the native core stop at a limit.  Others
take numcodecs, which is imported when it is needed, and are told apart first:
numcodecs has codecs that run what they read.
"""

import bz2
import importlib
import lzma
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from relayout import _native, errors
from relayout.tree.array_spec import ArraySpec, bits_per_element

type Decode = Callable[[bytes, str], bytes]
"""Takes the stored bytes of a chunk and where they are; returns its values."""

type Codec = tuple[str, Mapping[str, Any]]
"""Name and configuration."""

_CHECKSUM_BYTES = 4
_PREFIX = "numcodecs."  # of codecs that zarr-python takes over from zarr v2
_BLOSC_HEADER_BYTES = 16
_LZ4_HEADER_BYTES = 4
_BY_NUMCODECS = frozenset(
  {"adler32", "blosc", "crc32", "delta", "fletcher32", "lz4", "shuffle"}
)
_PER_FRAME = 1 << 16  # bytes that a codec may add


def max_num_bytes(num_bytes: int) -> int:
  """Returns the most bytes that `num_bytes` of values can take when encoded."""
  return 2 * num_bytes + _PER_FRAME


def split(codec: Any) -> Codec:
  """Returns the name and the configuration of a codec of zarr v3."""
  if isinstance(codec, str):
    return codec, {}
  return codec["name"], codec.get("configuration") or {}


def chain(spec: ArraySpec, name: str) -> Decode:
  """Returns what undoes the codecs of an array, those of order aside.

  Args:
    spec: The array.
    name: Names it in messages.

  Raises:
    UnsupportedError: If a codec is unknown, or takes numcodecs, which is not
      installed.
  """
  num_bytes = math.prod(spec.chunk_shape) * bits_per_element(spec.dtype) // 8
  limit = max_num_bytes(num_bytes)
  steps = [_decoder(codec, limit, name) for codec in _codecs(spec)]

  def decode(data: bytes, where: str) -> bytes:
    for step in reversed(steps):
      data = step(data, where)
    return data

  return decode


def _codecs(spec: ArraySpec) -> list[Codec]:
  """Returns the chain in the order of encoding."""
  if spec.zarr_format == 2:
    listed = [*(spec.raw.get("filters") or []), spec.raw.get("compressor")]
    return [(codec["id"], codec) for codec in listed if codec is not None]
  return [
    (name.removeprefix(_PREFIX), configuration)
    for name, configuration in map(split, spec.raw["codecs"])
    if name not in ("bytes", "transpose")
  ]


def _decoder(codec: Codec, limit: int, name: str) -> Decode:
  """Returns what undoes one codec; the result has at most `limit` bytes."""
  identifier, configuration = codec
  match identifier:
    case "zstd":
      return lambda data, where: _unzstd(data, limit, where)
    case "crc32c":
      return _without_checksum
    case "gzip" | "zlib":
      return lambda data, where: _inflate(
        zlib.decompressobj(wbits=32 + zlib.MAX_WBITS), data, limit, where
      )
    case "bz2":
      return lambda data, where: _inflate(
        bz2.BZ2Decompressor(), data, limit, where
      )
    case "lzma":
      return _lzma_decoder(configuration, limit, name)
  if identifier in _BY_NUMCODECS:
    return _numcodecs_decoder(codec, limit, name)
  raise errors.UnsupportedError(
    f"{name}: the codec {identifier[:40]!r} is not one that relayout decodes;"
    " write the checkpoint anew without it"
  )


def _unzstd(data: bytes, limit: int, where: str) -> bytes:
  try:
    return _native.zstd_decompress(data, max_num_bytes=limit)
  except errors.CorruptCheckpointError as error:
    raise errors.CorruptCheckpointError(f"{where}: {error}") from error


class _Decompressor(Protocol):
  """What decompressors of the standard library have in common."""

  @property
  def eof(self) -> bool: ...

  def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _inflate(
  decompressor: _Decompressor, data: bytes, limit: int, where: str
) -> bytes:
  try:
    result = decompressor.decompress(data, limit + 1)
  except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
    raise errors.CorruptCheckpointError(
      f"{where}: can't be decompressed ({error})"
    ) from error
  if not decompressor.eof or len(result) > limit:
    raise errors.CorruptCheckpointError(
      f"{where}: a chunk is cut short, or holds more than {limit} bytes"
    )
  return result


def _lzma_decoder(
  configuration: Mapping[str, Any], limit: int, name: str
) -> Decode:
  if configuration.get("format", lzma.FORMAT_XZ) != lzma.FORMAT_XZ or (
    configuration.get("filters") is not None
  ):
    raise errors.UnsupportedError(
      f"{name}: lzma with filters, or without the container xz, is not decoded"
    )
  return lambda data, where: _inflate(
    lzma.LZMADecompressor(lzma.FORMAT_XZ), data, limit, where
  )


def _without_checksum(data: bytes, where: str) -> bytes:
  body, stored = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
  if len(stored) < _CHECKSUM_BYTES or (
    _native.crc32c(body) != int.from_bytes(stored, "little")
  ):
    raise errors.CorruptCheckpointError(
      f"{where}: a chunk's checksum is wrong; the data is damaged"
    )
  return body


def _numcodecs_decoder(codec: Codec, limit: int, name: str) -> Decode:
  identifier, configuration = codec
  made = _numcodecs_codec(identifier, configuration, name)

  def decode(data: bytes, where: str) -> bytes:
    _check_header(identifier, data, limit, where)
    try:
      return bytes(memoryview(made.decode(data)).cast("B"))
    except Exception as error:  # Each codec of numcodecs has its own.
      raise errors.CorruptCheckpointError(
        f"{where}: can't be decoded as {identifier} ({error})"
      ) from error

  return decode


def _numcodecs_codec(
  identifier: str, configuration: Mapping[str, Any], name: str
) -> Any:
  try:
    numcodecs = importlib.import_module("numcodecs")
  except ImportError as error:
    raise errors.UnsupportedError(
      f"{name}: its chunks are compressed by {identifier}, which takes a"
      " package: pip install numcodecs"
    ) from error
  if identifier == "blosc":
    configuration = {}  # a chunk tells how to read it
  try:
    return numcodecs.get_codec({**configuration, "id": identifier})
  except Exception as error:  # Each codec of numcodecs has its own.
    raise errors.UnsupportedError(
      f"{name}: numcodecs takes no codec {identifier} of this configuration"
      f" ({error})"
    ) from error


def _check_header(identifier: str, data: bytes, limit: int, where: str) -> None:
  """Refuses chunks that claim to hold more than they can."""
  if identifier == "blosc":
    fits = len(data) >= _BLOSC_HEADER_BYTES and (
      int.from_bytes(data[12:16], "little") == len(data)
    )
    claimed = int.from_bytes(data[4:8], "little")
  elif identifier == "lz4":
    fits = len(data) >= _LZ4_HEADER_BYTES
    claimed = int.from_bytes(data[:_LZ4_HEADER_BYTES], "little")
  else:
    return
  if not fits or claimed > limit:
    raise errors.CorruptCheckpointError(
      f"{where}: {len(data)} bytes that claim to hold {claimed} bytes are no"
      f" chunk compressed by {identifier}"
    )
