"""`array_metadatas/process_<n>`: what each host wrote of each `jax.Array`."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from relayout import errors
from relayout.metadata import safe_json
from relayout.metadata.json_value import JsonValue

DIRECTORY_NAME = "array_metadatas"
FILE_NAME = "process_0"

_LIST = "array_metadatas"
_ENTRY = "array_metadata"
_KEY_IMPL = "random_key_impl"
_MAX_LENGTH = (1 << 62) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayMetadata:
  """One entry.

  Attributes:
    param_name: Name of the array in the store.
    write_shape: Shape of one device's part.
    chunk_shape: Shape of the chunks, inner ones where there are zarr shards.
    random_key_impl: Name of the generator, if the array is a typed PRNG key.
    ext_metadata: All extension metadata, `random_key_impl` included, or None.
  """

  param_name: str
  write_shape: tuple[int, ...]
  chunk_shape: tuple[int, ...]
  random_key_impl: str | None = None
  ext_metadata: Mapping[str, Any] | None = None


def read_array_metadatas(
  item: pathlib.Path,
) -> dict[str, ArrayMetadata] | None:
  """Returns the entries of all hosts by name; None if there are no files.

  Raises:
    CorruptCheckpointError: If a file is damaged, or two hosts contradict each
      other.
  """
  directory = item / DIRECTORY_NAME
  try:
    paths = sorted(
      path for path in directory.iterdir() if path.name.startswith("process_")
    )
  except FileNotFoundError:
    return None
  except OSError as error:
    raise errors.CorruptCheckpointError(
      f"{directory}: can't be listed ({error.strerror})"
    ) from error
  if not paths:
    return None
  merged: dict[str, ArrayMetadata] = {}
  for path in paths:
    entries = parse_array_metadatas(safe_json.read_bytes(path), str(path))
    _merge(merged, entries, path)
  return merged


def parse_array_metadatas(
  data: bytes, source: str
) -> tuple[ArrayMetadata, ...]:
  """Returns the entries in the bytes of one host's file.

  Raises:
    CorruptCheckpointError: If they are not what Orbax writes.
  """
  root = JsonValue(safe_json.loads(data, source), source)
  return tuple(_parse_entries(root))


def array_metadatas_bytes(entries: Iterable[ArrayMetadata]) -> bytes:
  """Returns the bytes of one host's file, laid out as Orbax does."""
  value = {_LIST: [{_ENTRY: _entry_json(entry)} for entry in entries]}
  return json.dumps(value).encode("utf-8")


def _merge(
  merged: dict[str, ArrayMetadata],
  entries: Iterable[ArrayMetadata],
  path: pathlib.Path,
) -> None:
  for entry in entries:
    known = merged.setdefault(entry.param_name, entry)
    if known != entry:
      raise errors.CorruptCheckpointError(
        f"{path}: array {entry.param_name!r} is {_describe(entry)}, but"
        f" another file (or entry) beside it says {_describe(known)}; the"
        " files stem from different saves"
      )


def _describe(entry: ArrayMetadata) -> str:
  return (
    f"written as {list(entry.write_shape)} in chunks of"
    f" {list(entry.chunk_shape)} with key kind {entry.random_key_impl}"
  )


def _parse_entries(root: JsonValue) -> Iterator[ArrayMetadata]:
  for element in root[_LIST].elements():
    entry = element[_ENTRY]
    ext_metadata = entry.get("ext_metadata")
    key_impl = None if ext_metadata is None else ext_metadata.get(_KEY_IMPL)
    yield ArrayMetadata(
      param_name=entry["param_name"].text(),
      write_shape=_parse_shape(entry["write_shape"]),
      chunk_shape=_parse_shape(entry["chunk_shape"]),
      random_key_impl=None if key_impl is None else key_impl.text(),
      ext_metadata=None if ext_metadata is None else ext_metadata.members(),
    )


def _parse_shape(value: JsonValue) -> tuple[int, ...]:
  return value.integers(minimum=0, maximum=_MAX_LENGTH)


def _entry_json(entry: ArrayMetadata) -> dict[str, Any]:
  ext_metadata = entry.ext_metadata
  if entry.random_key_impl is not None:
    ext_metadata = {
      **(ext_metadata or {}),
      _KEY_IMPL: entry.random_key_impl,
    }
  return {
    "param_name": entry.param_name,
    "write_shape": list(entry.write_shape),
    "chunk_shape": list(entry.chunk_shape),
    "ext_metadata": None if ext_metadata is None else dict(ext_metadata),
  }
