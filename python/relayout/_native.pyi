"""
The C++ core of relayout.
"""

from __future__ import annotations
import collections.abc
import os
import typing

__all__: list[str] = [
  "ApplyReport",
  "ArrayEntry",
  "ArrayMove",
  "ChunkKeyFormat",
  "DataFile",
  "Listing",
  "PlannedEntry",
  "PlannedFile",
  "RekeyPlan",
  "apply_rekey",
  "crc32c",
  "decode_shard_index",
  "list_database",
  "plan_rekey",
  "zstd_decompress",
]

class DataFile:
  """
  A data file of a database.
  """
  @property
  def num_bytes(self) -> int: ...
  @property
  def path(self) -> str:
    """
    Below the directory of the database.
    """

class ArrayEntry:
  """
  An array of a database.
  """
  @property
  def metadata(self) -> bytes: ...
  @property
  def metadata_key(self) -> str:
    """
    `.zarray` or `zarr.json`.
    """
  @property
  def name(self) -> str: ...
  @property
  def num_chunks(self) -> int:
    """
    Number of chunks that are stored.
    """
  @property
  def num_inline_chunks(self) -> int: ...
  @property
  def num_stored_bytes(self) -> int: ...

class Listing:
  """
  The keys of one version of a database.
  """
  def arrays(self) -> list[ArrayEntry]:
    """
    Returns the arrays, sorted by name.
    """
  def num_value_bytes(self, key: bytes) -> int:
    """
    Returns the length of a value; raises KeyError.
    """
  def read(
    self,
    key: bytes,
    *,
    offset: typing.SupportsInt | typing.SupportsIndex = 0,
    length: typing.SupportsInt | typing.SupportsIndex | None = None,
  ) -> bytes:
    """
    Returns a value, or a range of it; raises KeyError.
    """
  def stray_keys(
    self, limit: typing.SupportsInt | typing.SupportsIndex
  ) -> list[bytes]:
    """
    Returns the first keys that belong to no array.
    """
  @property
  def directory(self) -> str: ...
  @property
  def files(self) -> list[DataFile]: ...
  @property
  def generation(self) -> int: ...
  @property
  def max_decoded_node_bytes(self) -> int: ...
  @property
  def max_inline_value_bytes(self) -> int: ...
  @property
  def num_keys(self) -> int: ...
  @property
  def uuid(self) -> bytes: ...
  @property
  def zstd_level(self) -> int | None:
    """
    Level of nodes and manifests; None: not compressed.
    """

class ChunkKeyFormat:
  """
  How the keys of chunks are spelled.
  """
  def __init__(self, style: str, separator: str) -> None:
    """
    `style` is "v2" (`0.1`) or "default" (`c/0/1`).
    """
  @property
  def separator(self) -> str: ...
  @property
  def style(self) -> str: ...

class ArrayMove:
  """
  Moves the chunks of an array to another, or to a slice of it.
  """
  def __init__(
    self,
    listing: typing.SupportsInt | typing.SupportsIndex,
    source_array: str,
    target_array: str,
    source_keys: ChunkKeyFormat,
    target_keys: ChunkKeyFormat,
    source_grid: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    target_index: collections.abc.Sequence[
      tuple[str, typing.SupportsInt | typing.SupportsIndex]
    ],
    filters: collections.abc.Sequence[
      tuple[
        typing.SupportsInt | typing.SupportsIndex,
        typing.SupportsInt | typing.SupportsIndex,
      ]
    ] = (),
    value_range: tuple[
      typing.SupportsInt | typing.SupportsIndex,
      typing.SupportsInt | typing.SupportsIndex,
    ]
    | None = None,
  ) -> None:
    """
    `target_index` has ("axis", source axis) or ("index", constant) for each
    target axis; `filters` has (axis, index) to take only the chunks there;
    `value_range` is the (offset, length) to take of each value.
    """
  @property
  def listing(self) -> int: ...
  @property
  def source_array(self) -> str: ...
  @property
  def target_array(self) -> str: ...

class PlannedFile:
  """
  A data file that a plan refers to.
  """
  @property
  def listing(self) -> int: ...
  @property
  def num_bytes(self) -> int: ...
  @property
  def path(self) -> str:
    """
    Below the directory of the listing's database.
    """

class PlannedEntry:
  """
  A target key and where its value lies.
  """
  @property
  def file(self) -> int | None:
    """
    Index into `RekeyPlan.files`; None: the value is inline.
    """
  @property
  def inline_value(self) -> memoryview | None: ...
  @property
  def key(self) -> bytes: ...
  @property
  def length(self) -> int: ...
  @property
  def offset(self) -> int | None: ...

class RekeyPlan:
  """
  The keys and data references of a new database.
  """
  def entries(
    self,
    start: typing.SupportsInt | typing.SupportsIndex,
    stop: typing.SupportsInt | typing.SupportsIndex,
  ) -> list[PlannedEntry]:
    """
    Returns some entries, for inspection.
    """
  @property
  def files(self) -> list[PlannedFile]: ...
  @property
  def num_indirect_bytes(self) -> int: ...
  @property
  def num_inline_bytes(self) -> int: ...
  @property
  def num_keys(self) -> int: ...

class ApplyReport:
  """
  What `apply_rekey` wrote.
  """
  @property
  def height(self) -> int:
    """
    Of the root node.
    """
  @property
  def num_bytes_written(self) -> int:
    """
    Of the data file and the manifest.
    """
  @property
  def num_keys(self) -> int: ...
  @property
  def num_nodes(self) -> int: ...

def apply_rekey(
  plan: RekeyPlan,
  *,
  directory: os.PathLike[str] | str,
  file_paths: collections.abc.Sequence[os.PathLike[str] | str],
  uuid: bytes,
  max_inline_value_bytes: typing.SupportsInt | typing.SupportsIndex,
  max_decoded_node_bytes: typing.SupportsInt | typing.SupportsIndex,
  zstd_level: typing.SupportsInt | typing.SupportsIndex | None,
  data_file: os.PathLike[str] | str,
  commit_time_ns: typing.SupportsInt | typing.SupportsIndex,
  sync: bool = True,
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> ApplyReport:
  """
  Writes the nodes and the manifest of `plan`.
  """

def crc32c(data: collections.abc.Buffer) -> int:
  """
  Returns the CRC-32C of `data`.
  """

def decode_shard_index(
  data: collections.abc.Buffer,
  /,
  *,
  num_chunks: typing.SupportsInt | typing.SupportsIndex,
  checksum: bool,
  at_end: bool = True,
  num_value_bytes: typing.SupportsInt | typing.SupportsIndex | None = None,
) -> list[tuple[int, int] | None]:
  """
  Returns (offset, length) of each inner chunk of a zarr shard, None if absent.

  `data` is the whole stored value, or its index alone if `num_value_bytes`,
  the length of the value, is given.
  """

def list_database(
  directory: os.PathLike[str] | str,
  *,
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> Listing:
  """
  Lists the newest version of the OCDBT database in `directory`.
  """

def plan_rekey(
  listings: collections.abc.Sequence[Listing],
  *,
  moves: collections.abc.Sequence[ArrayMove],
  literals: collections.abc.Sequence[tuple[str | bytes, bytes]],
  drops: collections.abc.Sequence[
    tuple[typing.SupportsInt | typing.SupportsIndex, str | bytes]
  ],
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> RekeyPlan:
  """
  Plans a database of the arrays of others under new keys.

  `literals` are (key, value); `drops` are (listing, array name or stray key) to
  leave out.
  """

def zstd_decompress(
  data: collections.abc.Buffer,
  /,
  *,
  max_num_bytes: typing.SupportsInt | typing.SupportsIndex,
) -> bytes:
  """
  Returns the content of one zstd frame.
  """
