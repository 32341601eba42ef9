"""Checkpoint items written and read with TensorStore, apart from our code."""

import hashlib
import json
import shutil
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


def write_plain_item(directory: Path, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes arrays as zarr v2, each one uncompressed chunk, all in one go."""
  store = ts.KvStore.open(kvstore(directory)).result()
  writes = []
  for name, values in arrays.items():
    names_type = values.dtype.kind == "V"  # bfloat16 and its like
    metadata = {
      "zarr_format": 2,
      "shape": list(values.shape),
      "chunks": list(values.shape),
      "dtype": values.dtype.name if names_type else values.dtype.str,
      "fill_value": None,
      "order": "C",
      "filters": None,
      "compressor": None,
      "dimension_separator": ".",
    }
    chunk = ".".join("0" * values.ndim) or "0"
    writes += [
      store.write(f"{name}/.zarray", json.dumps(metadata).encode()),
      store.write(f"{name}/{chunk}", values.tobytes()),
    ]
  for write in writes:
    write.result()


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


def digests(directory: Path) -> dict[str, str]:
  """Returns the digest of each array of an item."""
  return {name: digest(values) for name, values in read_item(directory).items()}


def digest(values: np.ndarray) -> str:
  """Returns the SHA-256 of the C-order bytes of an array."""
  return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def file_digest(path: Path) -> str:
  """Returns the SHA-256 of a file's content."""
  return hashlib.sha256(path.read_bytes()).hexdigest()


def overwrite_key(directory: Path, key: str, value: bytes | None) -> None:
  """Puts bytes under a key of a database; None removes it."""
  store = ts.KvStore.open(kvstore(directory)).result()
  store.write(key, value).result()


def write_hollow_item(
  directory: Path, name: str, *, shape: tuple[int, ...], chunk: tuple[int, ...]
) -> None:
  """Writes the metadata of a float32 array of which no chunk is stored."""
  ts.open(
    _array_spec(directory, name, 2, list(chunk), None, {}),
    create=True,
    dtype=ts.float32,
    shape=shape,
  ).result()


def write_split_item(
  directory: Path,
  arrays: Mapping[str, np.ndarray],
  *,
  chunks: Mapping[str, tuple[int, ...]],
  num_hosts: int = 2,
) -> None:
  """Writes arrays as several hosts do that never merge their databases.

  Host h writes the blocks of axis 0 whose number is h modulo `num_hosts`.
  """
  for name, values in arrays.items():
    length = chunks[name][0]
    for host in range(num_hosts):
      database = directory / f"ocdbt.process_{host}"
      spec = _array_spec(database, name, 2, list(chunks[name]), None, {})
      store = ts.open(
        spec, create=True, dtype=ts.dtype(values.dtype), shape=values.shape
      ).result()
      for block in range(host, -(-len(values) // length), num_hosts):
        rows = slice(block * length, min((block + 1) * length, len(values)))
        store[rows].write(values[rows]).result()


def remove_database(directory: Path) -> None:
  """Removes the arrays of an item; its other files stay."""
  (directory / "manifest.ocdbt").unlink()
  shutil.rmtree(directory / "d", ignore_errors=True)


def delete_array(directory: Path, name: str) -> None:
  """Removes an array from a database; side files still name it."""
  store = ts.KvStore.open(kvstore(directory)).result()
  store.delete_range(ts.KvStore.KeyRange(f"{name}/", f"{name}0")).result()
