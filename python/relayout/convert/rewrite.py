"""Rewrites the parts of an item with the native core."""

import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from relayout import _native
from relayout.convert import staging, transcode
from relayout.convert.compression import codec_names, stored_level
from relayout.convert.plan import Stored, TargetLeaf
from relayout.convert.rewriting import Task
from relayout.convert.stores import Holder, Stores, is_in_shards, key_format
from relayout.errors import CorruptCheckpointError, OptionError
from relayout.layouts.state import StoredLeaf
from relayout.metadata import zarr_order
from relayout.metadata.zarr_array import array_metadata_bytes
from relayout.metadata.zarr_new import fill_bytes
from relayout.tree.array_spec import ArraySpec, bits_per_element

type Part = Sequence[Task]

_DECODED = frozenset({"zstd", "crc32c"})
_MANIFEST = "manifest.ocdbt"
_TRANSCODED = "transcoded"
_COPIES_OF_A_CHUNK = 3


def plan_part(
  part: Part, memory_limit: int, *, store_fill: bool
) -> _native.RewritePlan:
  """Returns the native plan of a part; reads shard indices and nothing else.

  Arrays whose codecs the core does not decode are planned as what they are
  before they are encoded.

  Raises:
    OptionError: If the memory limit is too low for one of its arrays.
  """
  stores = Stores(leaf for task in part for leaf in task.targets)
  holders = {
    stored.label: _undecoded(_holder(task, stored, stores), memory_limit)
    for task in part
    for stored in task.sources
  }
  return _plan(part, stores.listings, holders, memory_limit, store_fill)


def _undecoded(holder: Holder, memory_limit: int) -> Holder:
  """Returns what an array is before it is encoded.

  Raises:
    OptionError: If it is decoded chunk by chunk, and a chunk is too large.
  """
  if _is_decoded(holder.spec):
    return holder
  spec = transcode.raw_array_spec(holder.spec)
  itemsize = bits_per_element(spec.dtype) // 8
  # A chunk as stored, as decoded, and as it is handed on.
  needed = _COPIES_OF_A_CHUNK * math.prod(spec.chunk_shape) * itemsize
  if needed > memory_limit:
    raise OptionError(
      f"--memory_limit={memory_limit}: {holder.name} has chunks of "
      f"{list(spec.chunk_shape)} {spec.dtype} in a codec that is decoded as a "
      f"whole ({', '.join(codec_names(holder.spec))}), which takes up to "
      f"{needed} bytes. Raise the limit"
    )
  return Holder(holder.listings, holder.name, spec)


def find_part(directory: Path) -> "_native.Listing | None":
  """Returns the part that an earlier run completed in `directory`, or None."""
  if not (directory / _MANIFEST).is_file():
    return None
  try:
    return _native.list_database(directory)
  except CorruptCheckpointError:
    return None  # cut short in the wrong moment


def write_chunks(
  part: Part,
  directory: Path,
  memory_limit: int,
  *,
  store_fill: bool,
  progress: Callable[[int, int], None],
) -> "_native.Listing":
  """Writes the chunks of a part, which `complete_part` must follow.

  Args:
    part: What to rewrite.
    directory: Of the part; what it holds is removed.
    memory_limit: Most bytes for buffers.
    store_fill: Whether chunks that equal the fill value are stored.
    progress: Is told the bytes done and the bytes in all.

  Raises:
    CorruptCheckpointError: If stored chunks can't be decoded.
    OSError: If a file can't be read or written.
  """
  shutil.rmtree(directory, ignore_errors=True)
  (directory / "d").mkdir(parents=True)
  stores = Stores(leaf for task in part for leaf in task.targets)
  holders = dict(_transcoded(part, stores, directory / _TRANSCODED))
  plan = _plan(part, stores.listings, holders, memory_limit, store_fill)
  result = _native.rewrite(
    plan,
    directory=directory,
    data_file=f"d/{secrets.token_hex(16)}",
    sync=False,
    progress=progress,
  )
  shutil.rmtree(directory / _TRANSCODED, ignore_errors=True)
  return result.listing


def complete_part(
  part: Part, written: "_native.Listing", directory: Path
) -> "_native.Listing":
  """Makes chunks durable, then a database of them; returns it.

  Raises:
    OSError: If the disk is full, or a file can't be written.
  """
  for file in written.files:
    staging.sync(directory / file.path)
  _write_database(part, written, directory)
  return _native.list_database(directory)


def _plan(
  part: Part,
  listings: Sequence["_native.Listing"],
  holders: dict[str, Holder],
  memory_limit: int,
  store_fill: bool,
) -> _native.RewritePlan:
  made = [_native_task(task, listings, holders, store_fill) for task in part]
  try:
    return _native.plan_rewrite(made, memory_limit=memory_limit)
  except ValueError as error:
    raise OptionError(
      f"--memory_limit={memory_limit}: {error}. Raise the limit, or lower "
      "--chunk_bytes"
    ) from error


def _holder(task: Task, stored: StoredLeaf, stores: Stores) -> Holder:
  origin = task.targets[0].origin
  assert isinstance(origin, Stored)
  in_shards = is_in_shards(origin, stored)
  return stores.holder(stored, in_shards=in_shards)


def _transcoded(
  part: Part, stores: Stores, directory: Path
) -> Iterator[tuple[str, Holder]]:
  """Yields where the arrays are, decoded first if the core can't do it."""
  for task in part:
    for stored in task.sources:
      holder = _holder(task, stored, stores)
      if not _is_decoded(holder.spec):
        holder = _transcode(stored, holder, stores, directory)
      yield stored.label, holder


def _transcode(
  stored: StoredLeaf, holder: Holder, stores: Stores, directory: Path
) -> Holder:
  below = directory / str(len(stores.listings))
  found = [stores.listings[number] for number in holder.listings]
  listing, spec = transcode.transcode(found, holder.name, holder.spec, below)
  return Holder((stores.add(listing),), holder.name, spec)


def _is_decoded(spec: ArraySpec) -> bool:
  return set(codec_names(spec)) <= _DECODED


def _native_task(
  task: Task,
  listings: Sequence["_native.Listing"],
  holders: dict[str, Holder],
  store_fill: bool,
) -> _native.RewriteTask:
  return _native.RewriteTask(
    list(task.shape),
    list(task.layer_axes),
    [_source(holders[stored.label], listings) for stored in task.sources],
    [_target(leaf, store_fill=store_fill) for leaf in task.targets],
    source_axes=list(task.source_axes),
    target_axes=list(task.target_axes),
  )


def _source(
  holder: Holder, listings: Sequence["_native.Listing"]
) -> _native.RewriteSource:
  spec = holder.spec
  return _native.RewriteSource(
    [listings[number] for number in holder.listings],
    holder.name,
    key_format(spec),
    list(spec.shape),
    list(spec.chunk_shape),
    spec.dtype,
    codecs=list(codec_names(spec)),
    big_endian=zarr_order.byte_order(spec) == "big",
    axis_order=list(zarr_order.axis_order(spec)),
    fill_value=fill_bytes(spec, holder.name),
  )


def _target(leaf: TargetLeaf, *, store_fill: bool) -> _native.RewriteTarget:
  spec = leaf.spec
  assert spec is not None
  return _native.RewriteTarget(
    leaf.name,
    key_format(spec),
    list(spec.shape),
    list(spec.chunk_shape),
    spec.dtype,
    metadata_key=spec.metadata_key,
    metadata=array_metadata_bytes(spec),
    zstd_level=stored_level(spec),
    fill_value=fill_bytes(spec, leaf.name),
    store_fill=store_fill,
  )


def _write_database(
  part: Part, written: "_native.Listing", directory: Path
) -> None:
  """Writes the nodes and the manifest that make the part complete."""
  moves, literals = [], []
  for leaf in (leaf for task in part for leaf in task.targets):
    assert leaf.spec is not None
    moves.append(identity_move(leaf.name, leaf.spec, 0))
    key = f"{leaf.name}/{leaf.spec.metadata_key}"
    literals.append((key, array_metadata_bytes(leaf.spec)))
  plan = _native.plan_rekey([written], moves=moves, literals=literals, drops=[])
  with staging.in_place(directory):
    _native.apply_rekey(
      plan,
      directory=os.fspath(directory),
      file_paths=[file.path for file in plan.files],
      uuid=secrets.token_bytes(16),
      max_inline_value_bytes=1024,
      max_decoded_node_bytes=1 << 24,
      zstd_level=0,
      data_file=f"d/{secrets.token_hex(16)}",
      commit_time_ns=time.time_ns(),
    )


def identity_move(
  name: str, spec: ArraySpec, listing: int
) -> _native.ArrayMove:
  """Returns the move that leaves an array of a database as it is."""
  return _native.ArrayMove(
    listing,
    name,
    name,
    key_format(spec),
    key_format(spec),
    list(spec.grid),
    [("axis", axis) for axis in range(spec.rank)],
  )
