"""Checks an unscanned checkpoint against its source, with TensorStore."""

import os
from pathlib import Path
from typing import Any

from tests.bench import scanned

_MAX_NEW_BYTES = 1_000_000


def check(source: Path, target: Path, *, what: scanned.Scanned) -> None:
  """Checks every byte of what `convert` wrote to `target`."""
  (step,) = (path for path in target.iterdir() if path.name.isdecimal())
  check_database(source, step / scanned.ITEM, what=what)


def check_database(source: Path, item: Path, *, what: scanned.Scanned) -> None:
  """Checks every byte of the arrays of `item`.

  Raises:
    RuntimeError: If one has other bytes than its layer of the source.
  """
  import numpy as np

  for name in what.arrays:
    stack = _read(scanned.item(source), name)
    layers = scanned.layer_names(name, what.num_layers)
    for number, layer in enumerate(layers):
      stored, expected = _read(item, layer), stack[:, number]
      same = stored.dtype == expected.dtype and np.array_equal(
        stored.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8)
      )
      if not same:
        raise RuntimeError(f"{item}: {layer} has other values")


def check_nothing_is_new(
  source: Path, target: Path, *, what: scanned.Scanned
) -> None:
  """Checks values, and that all data is in files of the source."""
  check(source, target, what=what)
  new = sum(
    status.st_size
    for directory, _, files in os.walk(target)
    for status in (os.stat(os.path.join(directory, name)) for name in files)
    if status.st_nlink == 1
  )
  if new > _MAX_NEW_BYTES:
    raise RuntimeError(f"{target}: has {new} new bytes")


def _read(database: Path, name: str) -> Any:
  import tensorstore as ts

  spec = scanned.array_spec(database, name)
  return ts.open(spec, open=True, read=True).result().read().result()
