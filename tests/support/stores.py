"""Checkpoint items written and read with TensorStore, apart from our code."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401, registers bfloat16 and its like with NumPy
import numpy as np
import tensorstore as ts


def kvstore(directory: Path, path: str = "", **config: Any) -> dict[str, Any]:
  """Returns the spec of an OCDBT database; `config` for a new one."""
  spec: dict[str, Any] = {
    "driver": "ocdbt",
    "base": {"driver": "file", "path": f"{directory}/"},
    "path": path,
  }
  if config:
    spec["config"] = config
  return spec


def write_item(
  directory: Path,
  arrays: Mapping[str, np.ndarray],
  *,
  zarr_format: int = 2,
  chunks: Mapping[str, tuple[int, ...]] | None = None,
  inner_chunks: Mapping[str, tuple[int, ...]] | None = None,
  **config: Any,
) -> None:
  """Writes arrays by name into a new database, without side files.

  Args:
    directory: Directory of the database.
    arrays: Values by array name.
    zarr_format: 2 or 3.
    chunks: Chunk shapes; the whole array where there is none.
    inner_chunks: Shapes of inner chunks, which make a chunk of zarr v3 a zarr
      shard.
    **config: Of the OCDBT database, such as `max_decoded_node_bytes`.
  """
  for name, values in arrays.items():
    chunk = list((chunks or {}).get(name, values.shape))
    inner = (inner_chunks or {}).get(name)
    store = ts.open(
      _array_spec(directory, name, zarr_format, chunk, inner, config),
      create=True,
      dtype=ts.dtype(values.dtype),
      shape=values.shape,
    ).result()
    store.write(values).result()


def _array_spec(
  directory: Path,
  name: str,
  zarr_format: int,
  chunk: list[int],
  inner_chunk: tuple[int, ...] | None,
  config: Mapping[str, Any],
) -> dict[str, Any]:
  chunk = [max(length, 1) for length in chunk]
  spec: dict[str, Any] = {
    "driver": "zarr" if zarr_format == 2 else "zarr3",
    "kvstore": kvstore(directory, f"{name}/", **config),
    "store_data_equal_to_fill_value": True,
  }
  if zarr_format == 2:
    # As Orbax has it; TensorStore's own default would be blosc.
    spec["metadata"] = {
      "chunks": chunk,
      "compressor": {"id": "zstd", "level": 1},
    }
  else:
    spec["metadata"] = {
      "chunk_grid": {
        "name": "regular",
        "configuration": {"chunk_shape": chunk},
      },
      "codecs": _codecs(inner_chunk),
    }
  return spec


def _codecs(inner_chunk: tuple[int, ...] | None) -> list[Any]:
  codecs = ["bytes", {"name": "zstd", "configuration": {"level": 1}}]
  if inner_chunk is None:
    return codecs
  configuration = {"chunk_shape": list(inner_chunk), "codecs": codecs}
  return [{"name": "sharding_indexed", "configuration": configuration}]


def array_names(directory: Path) -> dict[str, str]:
  """Returns the driver of each array in a database, by name."""
  keys = ts.KvStore.open(kvstore(directory)).result().list().result()
  found = {}
  for key in sorted(key.decode() for key in keys):
    if key.endswith("/.zarray"):
      found[key.removesuffix("/.zarray")] = "zarr"
    elif key.endswith("/zarr.json"):
      found[key.removesuffix("/zarr.json")] = "zarr3"
  return found


def read_item(directory: Path) -> dict[str, np.ndarray]:
  """Returns every array of a database, by name."""
  result = {}
  for name, driver in array_names(directory).items():
    spec = {"driver": driver, "kvstore": kvstore(directory, f"{name}/")}
    result[name] = ts.open(spec, open=True, read=True).result().read().result()
  return result


def digest(values: np.ndarray) -> str:
  """Returns the SHA-256 of the C-order bytes of an array."""
  return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
