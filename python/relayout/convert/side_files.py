"""The files beside the arrays, as MaxText and Orbax write them."""

import time
from collections.abc import Mapping

from relayout.convert.plan import ItemPlan, StepPlan
from relayout.metadata.array_metadatas import (
  ArrayMetadata,
  array_metadatas_bytes,
)
from relayout.metadata.checkpoint import COMMIT_MARKER
from relayout.metadata.sharding import shardings_bytes
from relayout.metadata.step_metadata import StepMetadata, step_metadata_bytes
from relayout.metadata.tree_metadata import (
  TreeLeaf,
  TreeMetadata,
  tree_metadata_bytes,
)


def item_files(plan: StepPlan, item: ItemPlan) -> Mapping[str, bytes]:
  """Returns a target item's side files, by path below the item."""
  return {
    "_METADATA": _tree_metadata(plan, item),
    "_sharding": _shardings(item),
    "array_metadatas/process_0": _array_metadatas(item),
    COMMIT_MARKER: _marker(),
  }


def step_files(plan: StepPlan) -> Mapping[str, bytes]:
  """Returns the files of the target step itself, by name."""
  now = time.time_ns()
  metadata = StepMetadata(
    item_handlers={item.name: item.handler for item in plan.targets},
    custom_metadata=dict(plan.custom_metadata),
    init_timestamp_nsecs=now,
    commit_timestamp_nsecs=now,
  )
  return {
    "_CHECKPOINT_METADATA": step_metadata_bytes(metadata),
    COMMIT_MARKER: _marker(),
  }


def _marker() -> bytes:
  return f"Checkpoint commit was successful at {time.time():.6f}\n".encode()


def _tree_metadata(plan: StepPlan, item: ItemPlan) -> bytes:
  leaves = tuple(
    TreeLeaf(
      path=leaf.path,
      value_type="jax.Array" if leaf.spec else "None",
      skip_deserialize=leaf.spec is None,
      write_shape=leaf.write_shape if leaf.spec else None,
    )
    for leaf in item.leaves
  )
  return tree_metadata_bytes(
    TreeMetadata(
      leaves=leaves,
      use_zarr3=item.zarr_format == 3,
      store_array_data_equal_to_fill_value=plan.stores_fill_values,
      custom_metadata=item.custom_metadata,
    )
  )


def _array_metadatas(item: ItemPlan) -> bytes:
  return array_metadatas_bytes(
    ArrayMetadata(
      param_name=leaf.name,
      write_shape=leaf.write_shape,
      chunk_shape=leaf.spec.inner_chunk_shape or leaf.spec.chunk_shape,
      random_key_impl=leaf.random_key_impl,
    )
    for leaf in item.leaves
    if leaf.spec
  )


def _shardings(item: ItemPlan) -> bytes:
  return shardings_bytes(
    {leaf.name: leaf.sharding for leaf in item.leaves if leaf.sharding}
  )
