"""A second, small OCDBT encoder: it writes what the format forbids as well.

Written from the description in docs/design, apart from the C++, so that the
two can't agree on a mistake.  Nothing is checked here.  Every count and length
can be given another value than the true one.
"""

import dataclasses
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MANIFEST = 0x0CDB3A2A
VERSION_NODE = 0x0CDB1234
BTREE_NODE = 0x0CDB20DE

DATA = "d/data"
"""The data file that holds nodes and values."""

MISSING = 2**64 - 1


def _crc_table() -> list[int]:
  table = []
  for byte in range(256):
    for _ in range(8):
      byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    table.append(byte)
  return table


_CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
  """Returns the CRC-32C of `data`."""
  crc = 0xFFFFFFFF
  for byte in data:
    crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
  return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
  """Returns an unsigned LEB128 integer."""
  out = bytearray()
  while value >= 0x80:
    out.append(value & 0x7F | 0x80)
    value >>= 7
  return bytes((*out, value))


def varints(values: Sequence[int]) -> bytes:
  """Returns a column of integers."""
  return b"".join(map(varint, values))


def record(
  magic: int,
  body: bytes,
  *,
  compression: int = 0,
  version: int = 0,
  length: int | None = None,
  checksum: int | None = None,
) -> bytes:
  """Returns a record; what is not given is as it should be."""
  tail = varint(version) + varint(compression) + body
  if length is None:
    length = 4 + 8 + len(tail) + 4
  data = struct.pack(">I", magic) + struct.pack("<Q", length) + tail
  if checksum is None:
    checksum = crc32c(data)
  return data + struct.pack("<I", checksum)


def file_table(
  paths: Sequence[str | bytes], bases: Sequence[int] = ()
) -> bytes:
  """Returns a data file table without shared prefixes.

  Args:
    paths: Of the files.
    bases: How many bytes of each path are its base path; 0 if not given.
  """
  raw = [path if isinstance(path, bytes) else path.encode() for path in paths]
  return b"".join(
    (
      varint(len(raw)),
      varints([0] * (len(raw) - 1)),
      varints([len(path) for path in raw]),
      varints(list(bases) or [0] * len(raw)),
      b"".join(raw),
    )
  )


@dataclasses.dataclass(frozen=True)
class Ref:
  """An indirect value: a range of a data file, by its place in the table."""

  offset: int
  length: int
  file: int = 0


type Value = bytes | Ref


def leaf(
  entries: Sequence[tuple[bytes, Value]],
  *,
  files: Sequence[str | bytes] = (DATA,),
  bases: Sequence[int] = (),
  height: int = 0,
  count: int | None = None,
  prefix_lengths: Sequence[int] | None = None,
  suffix_lengths: Sequence[int] | None = None,
  value_lengths: Sequence[int] | None = None,
  kinds: bytes | None = None,
  trailing: bytes = b"",
) -> bytes:
  """Returns the body of a leaf whose keys share no prefixes."""
  keys = [key for key, _ in entries]
  refs = [value for _, value in entries if isinstance(value, Ref)]
  lengths = [
    value.length if isinstance(value, Ref) else len(value)
    for _, value in entries
  ]
  if kinds is None:
    kinds = bytes(isinstance(value, Ref) for _, value in entries)
  return b"".join(
    (
      bytes([height]),
      file_table(files, bases),
      varint(len(keys) if count is None else count),
      varints(prefix_lengths or [0] * (len(keys) - 1)),
      varints(suffix_lengths or [len(key) for key in keys]),
      b"".join(keys),
      varints(value_lengths or lengths),
      kinds,
      varints([ref.file for ref in refs]),
      varints([ref.offset for ref in refs]),
      b"".join(value for _, value in entries if isinstance(value, bytes)),
      trailing,
    )
  )


@dataclasses.dataclass(frozen=True)
class Child:
  """An entry of an interior node."""

  key: bytes
  offset: int
  length: int
  num_keys: int
  file: int = 0
  subtree_prefix: int = 0
  tree_bytes: int = 100
  value_bytes: int = 0


def interior(
  children: Sequence[Child],
  *,
  height: int = 1,
  files: Sequence[str | bytes] = (DATA,),
  count: int | None = None,
) -> bytes:
  """Returns the body of an interior node."""
  return b"".join(
    (
      bytes([height]),
      file_table(files),
      varint(len(children) if count is None else count),
      varints([0] * (len(children) - 1)),
      varints([len(child.key) for child in children]),
      varints([child.subtree_prefix for child in children]),
      b"".join(child.key for child in children),
      _columns(children),
    )
  )


def _columns(refs: Sequence["Child | Root"]) -> bytes:
  names = ("file", "offset", "length", "num_keys", "tree_bytes", "value_bytes")
  return b"".join(
    varints([getattr(ref, name) for ref in refs]) for name in names
  )


@dataclasses.dataclass(frozen=True)
class Root:
  """A version of the database."""

  offset: int
  length: int
  num_keys: int
  height: int = 0
  generation: int = 1
  file: int = 0
  tree_bytes: int = 100
  value_bytes: int = 0


def config(
  *,
  kind: int = 0,
  uuid: bytes = b"u" * 16,
  max_inline: int = 100,
  max_node: int = 8 << 20,
  arity: int = 4,
  compression: bytes = b"\0",
) -> bytes:
  """Returns the configuration at the start of a manifest."""
  numbers = varint(max_inline) + varint(max_node) + bytes([arity])
  return uuid + varint(kind) + numbers + compression


def versions(roots: Sequence[Root], *, count: int | None = None) -> bytes:
  """Returns the columns of the versions of a manifest or version node."""
  return b"".join(
    (
      varint(len(roots) if count is None else count),
      varints([root.generation for root in roots]),
      bytes(root.height for root in roots),
      _columns(roots),
      struct.pack("<Q", 1) * len(roots),
    )
  )


@dataclasses.dataclass(frozen=True)
class VersionNode:
  """A reference from a manifest to a node of the version tree."""

  generation: int
  offset: int
  length: int
  height: int
  num_generations: int
  file: int = 0
  commit_time: int = 0


def version_nodes(
  refs: Sequence[VersionNode], *, count: int | None = None
) -> bytes:
  """Returns the columns of the version tree references of a manifest."""
  names = ("generation", "file", "offset", "length", "num_generations")
  return b"".join(
    (
      varint(len(refs) if count is None else count),
      *(varints([getattr(ref, name) for ref in refs]) for name in names),
      b"".join(struct.pack("<Q", ref.commit_time) for ref in refs),
      bytes(ref.height for ref in refs),
    )
  )


def manifest(
  roots: Sequence[Root],
  *,
  header: bytes | None = None,
  files: Sequence[str | bytes] = (DATA,),
  nodes: Sequence[VersionNode] = (),
) -> bytes:
  """Returns the body of a manifest of the kind single."""
  header = config() if header is None else header
  return header + file_table(files) + versions(roots) + version_nodes(nodes)


class Database:
  """An item directory, written node by node."""

  def __init__(self, directory: Path) -> None:
    self.directory = directory
    self._data = bytearray()
    (directory / "d").mkdir(parents=True)

  @property
  def next_offset(self) -> int:
    """Where the next node or value begins."""
    return len(self._data)

  def append(self, data: bytes) -> Ref:
    """Adds bytes to the data file."""
    self._data += data
    return Ref(len(self._data) - len(data), len(data))

  def node(self, body: bytes, **fields: Any) -> Ref:
    """Adds a node to the data file."""
    return self.append(record(BTREE_NODE, body, **fields))

  def write(self, manifest_body: bytes, **fields: Any) -> None:
    """Writes the data file and the manifest."""
    (self.directory / DATA).write_bytes(self._data)
    data = record(MANIFEST, manifest_body, **fields)
    (self.directory / "manifest.ocdbt").write_bytes(data)

  def write_leaf(self, body: bytes, num_keys: int, **fields: Any) -> None:
    """Writes a database whose root is a leaf."""
    at = self.node(body, **fields)
    self.write(manifest([Root(at.offset, at.length, num_keys)]))


def zarray(shape: Sequence[int], /, **fields: Any) -> bytes:
  """Returns the `.zarray` of float32 values in one chunk, not compressed.

  Args:
    shape: Of the array and of its chunk.
    **fields: Other values of members.
  """
  value: dict[str, Any] = {
    "chunks": list(shape),
    "compressor": None,
    "dimension_separator": ".",
    "dtype": "<f4",
    "fill_value": None,
    "filters": None,
    "order": "C",
    "shape": list(shape),
    "zarr_format": 2,
  }
  return json.dumps(value | fields).encode()


def entries(arrays: Mapping[str | bytes, bytes]) -> list[tuple[bytes, Value]]:
  """Returns the entries of arrays of six values, by array name and metadata."""
  result: list[tuple[bytes, Value]] = []
  for name, metadata in arrays.items():
    prefix = name if isinstance(name, bytes) else name.encode()
    result += [(prefix + b"/.zarray", metadata), (prefix + b"/0.0", bytes(24))]
  return sorted(result)
