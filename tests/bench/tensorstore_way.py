"""Databases of many chunks, written, copied under new names and checked."""

import itertools
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from tests.bench import chunk_names
from tests.bench.durable import sync_tree

_CHUNK_SHAPE = (4, 8)
# Values above this are in data files, as those of real weights; nodes as Orbax
# configures them.
_CONFIG = {
  "max_inline_value_bytes": 100,
  "max_decoded_node_bytes": 100_000_000,
  "compression": {"id": "zstd", "level": 0},
}


def write_chunks(path: Path, *, num_chunks: int) -> None:
  """Writes arrays of float32 with `num_chunks` chunks of 128 bytes in all."""
  import tensorstore as ts

  store = _open(path, ts.Context(), config=_CONFIG)
  transaction = ts.Transaction()
  writer = store.with_transaction(transaction)
  number = itertools.count()
  for name, grid in chunk_names.arrays(num_chunks):
    writer[f"{name}/.zarray"] = _zarray(grid)
    for i, j in itertools.product(*map(range, grid)):
      value = next(number).to_bytes(8, "little") * 16
      writer[f"{name}/{i}.{j}"] = value
  transaction.commit_sync()


def copy_by_key(source: Path, target: Path) -> float:
  """Copies each key by reference under its new name; returns seconds.

  TensorStore copies by reference where the source lies in the target's
  directory, so its files are linked there first.
  """
  import tensorstore as ts

  started = time.perf_counter()
  shutil.copytree(source, target / "source", copy_function=os.link)
  context = ts.Context()
  old = _open(target / "source", context)
  new = _open(target, context)
  only = ts.KvStore.KeyRange("", "\0")
  # All at once: one after the other, each would be a commit of its own.
  copies = [
    (old / key).experimental_copy_range_to(
      new / chunk_names.renamed_key(key.decode()), only
    )
    for key in old.list().result()
  ]
  for copy in copies:
    copy.result()
  sync_tree(target)
  return time.perf_counter() - started


def check_renamed(source: Path, target: Path) -> None:
  """Checks all keys of `target`, and some values."""
  import tensorstore as ts

  old, new = _open(source, ts.Context()), _open(target, ts.Context())
  keys = {
    chunk_names.renamed_key(key.decode()).encode(): key
    for key in old.list().result()
  }
  if keys.keys() != set(new.list().result()):
    raise RuntimeError(f"{target}: has other keys than it should")
  for key in itertools.islice(keys, 0, None, max(1, len(keys) // 100)):
    if new.read(key).result().value != old.read(keys[key]).result().value:
      raise RuntimeError(f"{target}: {key!r} has another value")


def _zarray(grid: tuple[int, int]) -> bytes:
  shape = [n * size for n, size in zip(grid, _CHUNK_SHAPE, strict=True)]
  return json.dumps(
    {
      "zarr_format": 2,
      "shape": shape,
      "chunks": _CHUNK_SHAPE,
      "dtype": "<f4",
      "order": "C",
      "compressor": None,
      "filters": None,
      "fill_value": None,
      "dimension_separator": ".",
    }
  ).encode()


def _open(path: Path, context: Any, **options: Any) -> Any:
  import tensorstore as ts

  base = {"driver": "file", "path": f"{path}/"}
  spec = {"driver": "ocdbt", "base": base, **options}
  return ts.KvStore.open(spec, context=context).result()
