"""Decodes arrays whose codecs the native core does not decode.

The chunks are written as they were before compression, each a file of its own,
so that the core can go on from there.  One chunk is in memory at a time.
"""

import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from relayout import _native, errors
from relayout.convert import decoders
from relayout.metadata.small_array import chunk_key
from relayout.metadata.zarr_array import array_metadata_bytes
from relayout.tree.array_spec import ArraySpec, bits_per_element

if TYPE_CHECKING:
  from relayout._native import Listing

type Progress = Callable[[int, int], None]
"""Is told the chunks done and the chunks in all."""

type _Chunk = tuple["Listing", str]
"""Where a chunk is stored, and under which key below the array."""


def raw_array_spec(spec: ArraySpec) -> ArraySpec:
  """Returns the spec of the array `spec` without compression and filters.

  Values keep their order in a chunk and their byte order.

  Raises:
    UnsupportedError: If its chunks are zarr shards.
  """
  if spec.inner_chunk_shape is not None:
    raise errors.UnsupportedError(
      "zarr shards are not decoded as a whole; take their inner chunks"
    )
  raw = dict(spec.raw)
  if spec.zarr_format == 2:
    raw |= {"compressor": None, "filters": None}
  else:
    raw["codecs"] = [
      codec
      for codec in spec.raw["codecs"]
      if decoders.split(codec)[0] in ("transpose", "bytes")
    ]
  return dataclasses.replace(spec, raw=raw)


def transcode(
  listings: Sequence["Listing"],
  name: str,
  spec: ArraySpec,
  directory: pathlib.Path,
  progress: Progress | None = None,
) -> "tuple[Listing, ArraySpec]":
  """Writes the decoded chunks of an array below `directory`.

  Chunks that are not stored stay so.

  Args:
    listings: The databases that hold chunks of it.
    name: Its name in them, and in the result.
    spec: The array.
    directory: Where to write; made if need be, and of this array alone.
    progress: Is told of each chunk.

  Returns:
    What was written, as a database, and its spec, that of `raw_array_spec`.

  Raises:
    CorruptCheckpointError: If a chunk can't be decoded, has not the bytes of
      its shape, or its key is none of the array's.
    UnsupportedError: If a codec is unknown, or takes a package that is not
      installed.
    OSError: If a file can't be written.
  """
  raw = raw_array_spec(spec)
  decode = decoders.chain(spec, name)
  target = _make_directory(directory, name)
  (target / raw.metadata_key).write_bytes(array_metadata_bytes(raw))
  num_bytes = math.prod(spec.chunk_shape) * bits_per_element(spec.dtype) // 8
  chunks = [*_chunks(listings, name, spec)]
  for done, (listing, key) in enumerate(chunks, 1):
    where = f"{listing.directory}: {name}/{key}"
    data = decode(_read(listing, f"{name}/{key}", num_bytes, where), where)
    if len(data) != num_bytes:
      raise errors.CorruptCheckpointError(
        f"{where}: {len(data)} bytes of values, not the {num_bytes} of a chunk"
        f" of {list(spec.chunk_shape)} {spec.dtype}"
      )
    path = target / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if progress is not None:
      progress(done, len(chunks))
  return _native.list_directory(directory), raw


def _make_directory(directory: pathlib.Path, name: str) -> pathlib.Path:
  """Returns the new directory of the array; names come from the checkpoint."""
  parts = name.split("/")
  if any(
    part in ("", ".", "..") or "\0" in part or len(os.fsencode(part)) > 255
    for part in parts
  ):
    raise errors.UnsupportedError(
      f"array {name[:80]!r}: its name can't be that of a directory, and its"
      " codecs are decoded into one"
    )
  target = directory.joinpath(*parts)
  target.mkdir(parents=True)
  return target


def _chunks(
  listings: Sequence["Listing"], name: str, spec: ArraySpec
) -> Iterator[_Chunk]:
  """Yields the stored chunks; of several with one key, the first."""
  seen = set()
  for listing in listings:
    for data in listing.chunk_keys(name):
      key = _checked_key(data, spec)
      if key is None:
        raise errors.CorruptCheckpointError(
          f"{listing.directory}: {name}: {data[:80]!r} is no key of a chunk of"
          " this array"
        )
      if key not in seen:
        seen.add(key)
        yield listing, key


def _checked_key(data: bytes, spec: ArraySpec) -> str | None:
  """Returns a chunk key as text if it is one of the array's."""
  key = data.decode("ascii", "replace")
  parts = key.split(spec.key_separator)
  if spec.key_style == "default":
    parts = parts[1:]
  elif spec.rank == 0:
    parts = []
  if len(parts) != spec.rank or not all(
    part.isascii() and part.isdigit() and len(part) < 20 for part in parts
  ):
    return None
  index = tuple(map(int, parts))
  if any(i >= length for i, length in zip(index, spec.grid, strict=True)):
    return None
  return key if key == chunk_key(spec, index) else None


def _read(listing: "Listing", key: str, num_bytes: int, where: str) -> bytes:
  """Returns a stored chunk, which is hardly longer than its values."""
  stored = key.encode()
  length = listing.num_value_bytes(stored)
  if length > decoders.max_num_bytes(num_bytes):
    raise errors.CorruptCheckpointError(
      f"{where}: {length} bytes stored for {num_bytes} bytes of values"
    )
  try:
    return listing.read(stored)
  except (errors.CorruptCheckpointError, OSError) as error:
    raise errors.CorruptCheckpointError(f"{where}: {error}") from error
