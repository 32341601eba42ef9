"""What is measured of relayout inside a process."""

import os
import time
from pathlib import Path
from typing import Any

from tests.bench import chunk_names
from tests.bench.durable import sync_tree


def convert_to_scanned(source: Path, target: Path) -> float:
  """Plans and applies a conversion, which syncs; returns seconds."""
  from relayout.convert.options import Options
  from relayout.convert.run import convert

  options = Options(scan_layers="true", layer_pattern="flat")
  started = time.perf_counter()
  convert(source, target, options)
  return time.perf_counter() - started


def rename_chunks(source: Path, target: Path) -> float:
  """Lists, plans and applies new names for all arrays; returns seconds."""
  from relayout import _native

  started = time.perf_counter()
  plan = _plan(_native, _native.list_database(source))
  _apply(_native, plan, source, target)
  sync_tree(target)
  return time.perf_counter() - started


def _plan(native: Any, listing: Any) -> Any:
  keys = native.ChunkKeyFormat("v2", ".")
  moves, literals = [], []
  for array in listing.arrays():
    name = chunk_names.renamed(array.name)
    grid = chunk_names.grid(array.num_chunks)
    axes = [("axis", 0), ("axis", 1)]
    moves.append(native.ArrayMove(0, array.name, name, keys, keys, grid, axes))
    literals.append((f"{name}/{array.metadata_key}", array.metadata))
  return native.plan_rekey([listing], moves=moves, literals=literals, drops=[])


def _apply(native: Any, plan: Any, source: Path, target: Path) -> None:
  (target / "d").mkdir(parents=True)
  names = [f"d/{number}" for number, _ in enumerate(plan.files)]
  for file, name in zip(plan.files, names, strict=True):
    os.link(source / file.path, target / name)
  native.apply_rekey(
    plan,
    directory=target,
    file_paths=names,
    uuid=bytes(16),
    max_inline_value_bytes=100,
    max_decoded_node_bytes=100_000_000,
    zstd_level=0,
    data_file="d/nodes",
    commit_time_ns=time.time_ns(),
  )
