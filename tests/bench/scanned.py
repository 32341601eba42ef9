"""Writes a scanned checkpoint as MaxText does: all layers in one chunk."""

import dataclasses
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.orbax_way import quiet_orbax

STEP = 4
ITEM = "items"

# As Orbax configures it.
_CONFIG = {
  "max_inline_value_bytes": 1024,
  "max_decoded_node_bytes": 100_000_000,
  "compression": {"id": "zstd", "level": 0},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Scanned:
  """Which arrays there are, and how they are stored.

  Attributes:
    shape: Of each; the layers are along axis 1.
    dtype: Data type.
    num_arrays: Number of arrays.
    compressed: With zstd level 3, or not at all.
    layer_chunks: Whether the chunks inside a zarr shard hold one layer each.
  """

  shape: tuple[int, int, int]
  dtype: str
  num_arrays: int = 4
  compressed: bool = True
  layer_chunks: bool = False

  @property
  def num_layers(self) -> int:
    return self.shape[1]

  @property
  def num_array_bytes(self) -> int:
    """Size of one array in memory, bytes."""
    return math.prod(self.shape) * (4 if self.dtype == "float32" else 2)

  @property
  def num_bytes(self) -> int:
    """Size of all arrays in memory, bytes."""
    return self.num_arrays * self.num_array_bytes

  @property
  def arrays(self) -> list[str]:
    """Names of the arrays in the database."""
    names = map(matrix, range(self.num_arrays))
    return [f"params.params.decoder.layers.mlp.{name}.kernel" for name in names]


def matrix(number: int) -> str:
  """Returns the name of a matrix of each layer."""
  return f"wi_{number}"


def item(run: Path) -> Path:
  """Returns the directory of the only item of a run."""
  return run / str(STEP) / ITEM


def write_run(path: Path, *, scanned: Scanned) -> None:
  """Writes step 4 of a run of MaxText: weights only, zarr v3, OCDBT."""
  ocp = quiet_orbax()
  save = ocp.args.PyTreeSave(item=_tree(scanned))
  handlers = {
    ITEM: ocp.PyTreeCheckpointHandler(
      use_zarr3=True,
      use_compression=scanned.compressed,
      save_concurrent_gb=2,
    )
  }
  with ocp.CheckpointManager(path, item_handlers=handlers) as manager:
    manager.save(STEP, args=ocp.args.Composite(**{ITEM: save}), force=True)
  if scanned.layer_chunks:
    _divide_shards(item(path), scanned)


def _tree(scanned: Scanned) -> dict[str, Any]:
  """Returns the weights; of many arrays, every fifth is the same again."""
  import jax

  values = [
    jax.numpy.asarray(_values(scanned, seed))
    for seed in range(min(scanned.num_arrays, 4))
  ]
  matrices = {
    matrix(number): {"kernel": values[number % len(values)]}
    for number in range(scanned.num_arrays)
  }
  return {"params": {"params": {"decoder": {"layers": {"mlp": matrices}}}}}


def _values(scanned: Scanned, seed: int) -> Any:
  import ml_dtypes
  import numpy as np

  values = np.random.default_rng(seed).standard_normal(
    scanned.shape, dtype=np.float32
  )
  if scanned.dtype == "bfloat16":
    return values.astype(ml_dtypes.bfloat16)
  return values


def _divide_shards(directory: Path, scanned: Scanned) -> None:
  """Writes the database anew, each array a shard of a chunk for each layer.

  Orbax reads such shards, and writes one chunk a shard.
  """
  import tensorstore as ts

  old = directory / "old"
  old.mkdir()
  for name in ("manifest.ocdbt", "d", "ocdbt.process_0"):
    (directory / name).rename(old / name)
  shutil.rmtree(directory / "array_metadatas")
  for name in scanned.arrays:
    source = ts.open(array_spec(old, name), open=True).result()
    metadata = _metadata(old, name)
    (codec,) = metadata["codecs"]
    rows, _, columns = scanned.shape
    codec["configuration"]["chunk_shape"] = [rows, 1, columns]
    spec = array_spec(directory, name, config=_CONFIG) | {"metadata": metadata}
    ts.open(spec, create=True).result().write(source.read().result()).result()
  shutil.rmtree(old)


def _metadata(database: Path, name: str) -> dict[str, Any]:
  import tensorstore as ts

  spec = array_spec(database, name)["kvstore"]
  text = ts.KvStore.open(spec).result().read("zarr.json").result().value
  return dict(json.loads(text))


def array_spec(
  database: Path, name: str, **kvstore_options: Any
) -> dict[str, Any]:
  """Returns TensorStore's spec of an array of zarr v3 in a database."""
  return {
    "driver": "zarr3",
    "kvstore": {
      "driver": "ocdbt",
      "base": {"driver": "file", "path": f"{database}/"},
      "path": f"{name}/",
      **kvstore_options,
    },
  }


def layer_names(name: str, num_layers: int) -> Iterator[str]:
  """Yields what a scanned array becomes, in the order of the layers."""
  for layer in range(num_layers):
    yield name.replace(".layers.", f".layers_{layer}.")
