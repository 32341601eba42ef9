"""What is measured of unstacking, inside a process."""

import time
from pathlib import Path
from typing import Any

from tests.bench.scanned import layer_names

MEMORY_LIMIT = 256 << 20
"""Bytes of buffers for what is rewritten."""


def convert(source: Path, target: Path) -> float:
  """Plans and applies a conversion, which syncs; returns seconds."""
  from relayout.convert import run

  started = time.perf_counter()
  run.convert(source, target, _options())
  return time.perf_counter() - started


def planned_arrays(source: Path) -> dict[str, dict[str, bytes]]:
  """Returns the metadata of what each scanned array becomes, by name."""
  from relayout.metadata.zarr_array import array_metadata_bytes

  result: dict[str, dict[str, bytes]] = {}
  for leaf in _planned_leaves(source):
    (stored,) = leaf.origin.sources
    names = result.setdefault(stored.leaf.name, {})
    names[leaf.name] = array_metadata_bytes(leaf.spec)
  return {
    name: {layer: found[layer] for layer in layer_names(name, len(found))}
    for name, found in result.items()
  }


def planned_chunk_shape(source: Path) -> tuple[int, ...]:
  """Returns the shape of the chunks of what a scanned array becomes."""
  (shape,) = {leaf.spec.chunk_shape for leaf in _planned_leaves(source)}
  return tuple(shape)


def _planned_leaves(source: Path) -> list[Any]:
  from relayout.convert import run

  target = source.parent / "planned"  # is not written
  report = run.convert(source, target, _options(), dry_run=True)
  (step,) = report.steps
  assert step.plan is not None
  return [leaf for leaf in step.plan.leaves if leaf.spec]


def _options() -> Any:
  from relayout.convert.options import Options

  return Options(
    scan_layers="false", layer_pattern="flat", memory_limit=MEMORY_LIMIT
  )
