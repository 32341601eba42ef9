"""Unstacks the layers of a checkpoint by copies of TensorStore."""

import json
import time
from pathlib import Path
from typing import Any

from tests.bench import relayout_unstack, scanned
from tests.bench.durable import sync_tree

# As Orbax configures it.
_CONFIG = {
  "max_inline_value_bytes": 1024,
  "max_decoded_node_bytes": 100_000_000,
}


def copy_layers(source: Path, target: Path) -> float:
  """Copies each layer to an array such as relayout makes; returns seconds.

  All copies are under way at the same time, and the context is TensorStore's
  default.
  """
  import tensorstore as ts

  planned = relayout_unstack.planned_arrays(source)
  started = time.perf_counter()
  context = ts.Context()
  old = scanned.item(source)
  copies = []
  for name, layers in planned.items():
    spec = scanned.array_spec(old, name)
    stack = ts.open(spec, open=True, read=True, context=context).result()
    opened = [_create(target, *layer, context) for layer in layers.items()]
    copies += [
      array.result().write(stack[:, layer])
      for layer, array in enumerate(opened)
    ]
  for copy in copies:
    copy.result()
  sync_tree(target)
  return time.perf_counter() - started


def _create(target: Path, name: str, metadata: bytes, context: Any) -> Any:
  import tensorstore as ts

  spec = scanned.array_spec(target, name, config=_CONFIG)
  spec["metadata"] = json.loads(metadata)
  return ts.open(spec, create=True, context=context)
