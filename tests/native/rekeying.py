"""Re-keys databases for tests: links the data files, then applies a plan."""

import json
import os
import pathlib
import shutil

from relayout import _native

V2 = _native.ChunkKeyFormat("v2", ".")
UUID = bytes(range(16))


def link(source, target):
  """Links a file, or copies it if `target` is on another file system."""
  target.parent.mkdir(parents=True, exist_ok=True)
  try:
    os.link(source, target)
  except OSError:
    shutil.copyfile(source, target)


def link_and_apply(plan, listings, target, **options):
  """Makes the database of `plan` in the new directory `target`."""
  target = pathlib.Path(target)
  paths = []
  for position, file in enumerate(plan.files):
    path = f"d{file.listing}/{position}"
    directory = pathlib.Path(listings[file.listing].directory)
    link(directory / file.path, target / path)
    paths.append(path)
  target.mkdir(exist_ok=True)
  options = {
    "uuid": UUID,
    "max_inline_value_bytes": 100,
    "max_decoded_node_bytes": 1 << 20,
    "zstd_level": 0,
    "data_file": "d/nodes",
    "commit_time_ns": 1,
  } | options
  return _native.apply_rekey(
    plan, directory=target, file_paths=paths, **options
  )


def chunk_grid(entry):
  """Returns the key format and the number of chunks along each axis."""
  metadata = json.loads(entry.metadata)
  if entry.metadata_key == ".zarray":
    chunk_shape = metadata["chunks"]
    keys = _native.ChunkKeyFormat(
      "v2", metadata.get("dimension_separator", ".")
    )
  else:
    chunk_shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    encoding = metadata["chunk_key_encoding"]
    default = "/" if encoding["name"] == "default" else "."
    keys = _native.ChunkKeyFormat(
      encoding["name"],
      encoding.get("configuration", {}).get("separator", default),
    )
  shape = metadata["shape"]
  return keys, [-(-n // c) for n, c in zip(shape, chunk_shape, strict=True)]


def rename(entry, target, *, listing=0):
  """Returns the move and the literal that give an array another name."""
  keys, grid = chunk_grid(entry)
  move = _native.ArrayMove(
    listing,
    entry.name,
    target,
    keys,
    keys,
    grid,
    [("axis", axis) for axis in range(len(grid))],
  )
  return move, (f"{target}/{entry.metadata_key}", entry.metadata)


def plan_renames(listing, target_of):
  """Plans `listing` with every array called `target_of(name)`."""
  renames = [rename(e, target_of(e.name)) for e in listing.arrays()]
  return _native.plan_rekey(
    [listing],
    moves=[move for move, _ in renames],
    literals=[literal for _, literal in renames],
    drops=[],
  )
