"""Writes a checkpoint as Tunix does, and stacks its layers by way of NumPy."""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.durable import sync_tree

STEP = 4
ITEM = "model_params"
_MATRICES = ("wi_0", "wi_1", "wo")


def write_run(path: Path, *, num_layers: int, shape: tuple[int, int]) -> None:
  """Writes step 4 of a run of Tunix 0.1.7: weights only, float32, unscanned."""
  ocp = quiet_orbax()
  import jax
  import numpy as np

  generator = np.random.default_rng(0)

  def weight() -> Any:
    values = generator.standard_normal(shape, dtype=np.float32)
    return {"kernel": {"value": jax.numpy.asarray(values)}}

  layers = {
    f"layers_{number}": {"mlp": {name: weight() for name in _MATRICES}}
    for number in range(num_layers)
  }
  item = ocp.args.PyTreeSave(item={"decoder": layers})
  handlers = {ITEM: ocp.PyTreeCheckpointHandler()}
  with ocp.CheckpointManager(path, item_handlers=handlers) as manager:
    manager.save(STEP, args=ocp.args.Composite(**{ITEM: item}), force=True)


def restore_stack_save(source: Path, target: Path) -> float:
  """Restores to NumPy, stacks along axis 1, saves, syncs; returns seconds."""
  ocp = quiet_orbax()
  started = time.perf_counter()
  checkpointer = ocp.Checkpointer(ocp.PyTreeCheckpointHandler())
  tree = restore(ocp, checkpointer, source / str(STEP) / ITEM)
  args = ocp.args.PyTreeSave({"params": {"params": _stacked(tree)}})
  checkpointer.save(target, args=args)
  sync_tree(target)
  return time.perf_counter() - started


def quiet_orbax() -> Any:
  """Imports Orbax, quiet and on the CPU."""
  os.environ["JAX_PLATFORMS"] = "cpu"
  import orbax.checkpoint as ocp

  logging.getLogger("absl").setLevel(logging.ERROR)
  return ocp


def restore(ocp: Any, checkpointer: Any, item: Path) -> Mapping[str, Any]:
  """Returns the tree of an item, its arrays as those of NumPy."""
  import jax
  import numpy as np

  stored = checkpointer.metadata(item).item_metadata.tree
  as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
  args = jax.tree.map(lambda _: as_numpy, stored)
  tree: Mapping[str, Any] = checkpointer.restore(
    item, args=ocp.args.PyTreeRestore(restore_args=args)
  )
  return tree


def _stacked(tree: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the tree with one `layers` that has its layers along axis 1."""
  import numpy as np

  decoder = tree["decoder"]
  layers = [decoder[f"layers_{number}"] for number in range(len(decoder))]

  def stack(name: str) -> Any:
    return np.stack(
      [layer["mlp"][name]["kernel"]["value"] for layer in layers], axis=1
    )

  matrices = {name: {"kernel": stack(name)} for name in _MATRICES}
  return {"decoder": {"layers": {"mlp": matrices}}}
