"""What the readers that trainers use find in a step: digests by array name.

Run as a program with a step's directory, it restores the item `items` with
Orbax v0 and v1 and prints the digests: for another number of devices than the
caller has (`XLA_FLAGS`).
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import v1

type Digests = dict[str, str]

ITEM = "items"


def digests(tree: Any) -> Digests:
  """Returns the digest of each array of a tree, None leaves left out."""
  leaves, _ = jax.tree.flatten_with_path(tree)
  return {
    jax.tree_util.keystr(path, simple=True, separator="."): digest(leaf)
    for path, leaf in leaves
  }


def digest(array: Any) -> str:
  """Returns the SHA-256 of data type, shape and C-order bytes."""
  if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
    array = jax.random.key_data(array)
  values = np.asarray(array)
  head = f"{values.dtype} {list(values.shape)} ".encode()
  return hashlib.sha256(head + values.tobytes()).hexdigest()


def orbax_v0(step: Path) -> Any:
  """Restores with the released checkpointer, without a target."""
  return ocp.PyTreeCheckpointer().restore(step / ITEM)


def orbax_manager(step: Path) -> Any:
  """Restores as a trainer does, through a manager of the run."""
  with ocp.CheckpointManager(
    step.parent, item_handlers={ITEM: ocp.PyTreeCheckpointHandler()}
  ) as manager:
    assert int(step.name) in manager.all_steps()
    args = ocp.args.Composite(**{ITEM: ocp.args.PyTreeRestore()})
    return manager.restore(int(step.name), args=args)[ITEM]


def orbax_v1(step: Path) -> Any:
  """Restores with Orbax v1, without a target."""
  return v1.load_checkpointables(step, {ITEM: None})[ITEM]


def abstract(step: Path) -> Any:
  """Returns the tree that the step's metadata describes, on one device."""
  metadata = ocp.PyTreeCheckpointHandler().metadata(step / ITEM)
  sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])

  def leaf(found: Any) -> Any:
    return jax.ShapeDtypeStruct(found.shape, found.dtype, sharding=sharding)

  return jax.tree.map(leaf, metadata.tree)


def orbax_v0_to(step: Path, target: Any) -> Any:
  """Restores with Orbax v0 into a target."""
  args = ocp.checkpoint_utils.construct_restore_args(target)
  return ocp.PyTreeCheckpointer().restore(
    step / ITEM, item=target, restore_args=args
  )


def orbax_v1_to(step: Path, target: Any) -> Any:
  """Restores with Orbax v1 into a target."""
  return v1.load_checkpointables(step, {ITEM: target})[ITEM]


def without_target(step: Path) -> Mapping[str, Digests]:
  """Returns what each reader without a target finds."""
  readers = (orbax_v0, orbax_manager, orbax_v1)
  return {reader.__name__: digests(reader(step)) for reader in readers}


def with_target(step: Path) -> Mapping[str, Digests]:
  """Returns what each reader with a target finds."""
  target = abstract(step)
  readers = (orbax_v0_to, orbax_v1_to)
  return {reader.__name__: digests(reader(step, target)) for reader in readers}


if __name__ == "__main__":
  json.dump(without_target(Path(sys.argv[1])), sys.stdout)
