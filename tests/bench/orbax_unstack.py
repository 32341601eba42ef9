"""Unstacks the layers of a checkpoint by way of Orbax and NumPy."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench import scanned
from tests.bench.durable import sync_tree
from tests.bench.orbax_way import quiet_orbax, restore


def restore_unstack_save(source: Path, target: Path) -> float:
  """Restores to NumPy, unstacks axis 1, saves, syncs; returns seconds."""
  ocp = quiet_orbax()
  started = time.perf_counter()
  handler = ocp.PyTreeCheckpointHandler(use_zarr3=True)
  checkpointer = ocp.Checkpointer(handler)
  tree = restore(ocp, checkpointer, scanned.item(source))
  layers = _unstacked(tree["params"]["params"]["decoder"]["layers"])
  args = ocp.args.PyTreeSave({"params": {"params": {"decoder": layers}}})
  checkpointer.save(target, args=args)
  sync_tree(target)
  return time.perf_counter() - started


def _unstacked(stack: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a tree for each layer."""
  import numpy as np

  parts = {
    name: np.unstack(matrix["kernel"], axis=1)
    for name, matrix in stack["mlp"].items()
  }
  num_layers = len(next(iter(parts.values())))
  return {
    f"layers_{layer}": {
      "mlp": {name: {"kernel": part[layer]} for name, part in parts.items()}
    }
    for layer in range(num_layers)
  }
