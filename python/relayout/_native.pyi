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
  "RewritePlan",
  "RewriteResult",
  "RewriteSource",
  "RewriteTarget",
  "RewriteTask",
  "ShardedArray",
  "apply_rekey",
  "crc32c",
  "decode_shard_index",
  "flatten_shards",
  "list_database",
  "list_directory",
  "plan_rekey",
  "plan_rewrite",
  "rewrite",
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
  def chunk_keys(self, array: str) -> list[bytes]:
    """
    Returns the keys of the stored chunks of an array, below its name.
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
  ) -> None:
    """
    `target_index` has ("axis", source axis) or ("index", constant) for each
    target axis; `filters` has (axis, index) to take only the chunks there.
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

class RewriteSource:
  """
  An array whose chunks are read.
  """
  def __init__(
    self,
    listing: Listing | collections.abc.Sequence[Listing],
    array: str,
    keys: ChunkKeyFormat,
    shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    chunk_shape: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    dtype: str,
    *,
    codecs: collections.abc.Sequence[str] = ["zstd"],
    big_endian: bool = False,
    axis_order: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ]
    | None = None,
    fill_value: bytes,
  ) -> None:
    """
    `listing` may be several, of which the first that has a chunk wins.  `codecs`,
    of "zstd" and "crc32c", are in the order of encoding.  `axis_order` has the
    array's axes in the order of a chunk's memory, slowest first; None: C order.
    `fill_value` is one element, little endian.
    """
  @property
  def array(self) -> str: ...

class RewriteTarget:
  """
  An array whose chunks are written, in C order and little endian.
  """
  def __init__(
    self,
    array: str,
    keys: ChunkKeyFormat,
    shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    chunk_shape: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    dtype: str,
    *,
    metadata_key: str,
    metadata: bytes,
    zstd_level: typing.SupportsInt | typing.SupportsIndex | None,
    fill_value: bytes,
    store_fill: bool,
  ) -> None:
    """
    `zstd_level` None leaves chunks uncompressed.  With `store_fill`, chunks that
    the source does not store are stored.
    """
  @property
  def array(self) -> str: ...

class RewriteTask:
  """
  Arrays that become others, within one space of axes.
  """
  def __init__(
    self,
    shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    layer_axes: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    sources: collections.abc.Sequence[RewriteSource],
    targets: collections.abc.Sequence[RewriteTarget],
    *,
    source_axes: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    target_axes: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
  ) -> None:
    """
    A side is one array with all axes of the space, or an array for each layer, in
    C order, without the layer axes; `source_axes` and `target_axes` have the axis
    of the space for each axis of the side's arrays.
    """

class RewritePlan:
  """
  How tasks are done within a memory limit.
  """
  @property
  def expected_memory_bytes(self) -> int: ...
  @property
  def num_source_bytes(self) -> int:
    """
    Of the source arrays, decoded.
    """
  @property
  def num_stored_bytes(self) -> int:
    """
    Of the source arrays, as they are stored.
    """
  @property
  def num_streamed_bytes(self) -> int:
    """
    To be decoded of large source chunks, as often as they are needed.
    """
  @property
  def num_target_bytes(self) -> int:
    """
    Of the target arrays, decoded.
    """
  @property
  def num_units(self) -> int: ...

class RewriteResult:
  """
  What `rewrite` wrote.
  """
  @property
  def listing(self) -> Listing:
    """
    The target arrays, for `plan_rekey`.
    """
  @property
  def num_bytes_read(self) -> int: ...
  @property
  def num_bytes_written(self) -> int: ...
  @property
  def num_chunks_written(self) -> int: ...
  @property
  def peak_buffer_bytes(self) -> int: ...
  @property
  def phase_seconds(self) -> dict[str, float]:
    """
    Summed over threads.
    """

class ShardedArray:
  """
  An array of codec `sharding_indexed`.
  """
  def __init__(
    self,
    name: str,
    keys: ChunkKeyFormat,
    shard_grid: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    inner_grid_per_shard: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    inner_grid: collections.abc.Sequence[
      typing.SupportsInt | typing.SupportsIndex
    ],
    *,
    checksum: bool,
    at_end: bool,
    metadata: bytes,
  ) -> None:
    """
    `keys` spells shards and inner chunks; the grids are numbers of shards, of inner
    chunks in one shard, and of inner chunks in the array. `checksum` and `at_end`
    tell of the shard index; `metadata` is the `zarr.json` of the ordinary array.
    """
  @property
  def name(self) -> str: ...

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

def flatten_shards(
  listing: Listing,
  arrays: collections.abc.Sequence[ShardedArray],
  *,
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> Listing:
  """
  Returns a listing of these arrays alone, with the inner chunks of their shards
  for chunks: ranges of the same data files.
  """

def list_database(
  directory: os.PathLike[str] | str,
  *,
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> Listing:
  """
  Lists the newest version of the OCDBT database in `directory`.
  """

def list_directory(
  directory: os.PathLike[str] | str,
  *,
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> Listing:
  """
  Lists the zarr arrays that lie as plain files below `directory`: each file is one
  value, its path the key.
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

def plan_rewrite(
  tasks: collections.abc.Sequence[RewriteTask],
  *,
  memory_limit: typing.SupportsInt | typing.SupportsIndex,
  num_threads: typing.SupportsInt | typing.SupportsIndex = 0,
) -> RewritePlan:
  """
  Plans to do `tasks` in `memory_limit` bytes of buffers; reads no data.
  """

def rewrite(
  plan: RewritePlan,
  *,
  directory: os.PathLike[str] | str,
  data_file: os.PathLike[str] | str,
  sync: bool = True,
  progress: collections.abc.Callable[[int, int], None] | None = None,
) -> RewriteResult:
  """
  Writes the chunks of `plan` to the new file `data_file` below `directory`.

  `progress` is called, a few times a second, with the decoded bytes done and in
  all; what it raises ends the work.
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
