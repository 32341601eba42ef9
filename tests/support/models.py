"""Small checkpoints with values that tell where they belong, made by hand.

Written with TensorStore, and Orbax's side files; nothing of relayout.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import stores

SLOTS = ("mu", "nu")
_PYTREE = (
  "orbax.checkpoint.experimental.v1._src.handlers.pytree_handler.PyTreeHandler"
)
_PYTREE_V0 = (
  "orbax.checkpoint._src.handlers.pytree_checkpoint_handler"
  ".PyTreeCheckpointHandler"
)
_SHARDING = json.dumps(
  {"sharding_type": "SingleDeviceSharding", "device_str": "TFRT_CPU_0"}
)

type Arrays = Mapping[str, np.ndarray]


def layer_values(layer: int, *, experts: int = 3) -> dict[str, np.ndarray]:
  """Returns the weights of a layer; each element says where it is.

  `experts` has an axis of experts first, `scale` one axis, `gate` none.
  """
  kernel = np.arange(12, dtype=np.float32).reshape(4, 3) + 1000 * layer
  by_expert = np.stack(
    [kernel + 100 * (expert + 1) for expert in range(experts)]
  )
  return {
    "mlp.kernel": kernel,
    "mlp.experts": by_expert,
    "norm.scale": np.arange(4, dtype=np.float32) + 1000 * layer,
    "gate": np.float32(1000 * layer),
  }


def unscanned(num_layers: int) -> dict[str, np.ndarray]:
  """Returns the weights of an unscanned model, by model path."""
  weights = {"token_embedder.embedding": np.ones((5, 4), np.float32)}
  for layer in range(num_layers):
    for name, values in layer_values(layer).items():
      weights[f"decoder.layers_{layer}.{name}"] = np.asarray(values)
  return weights


def stack(layers: Iterable[np.ndarray], scan_axis: int = 1) -> np.ndarray:
  """Returns layers as one scan of MaxText stacks them."""
  layers = list(layers)
  axis = scan_axis if layers[0].ndim >= scan_axis else 0
  return np.stack(layers, axis)


def scanned_flat(num_layers: int, scan_axis: int = 1) -> dict[str, np.ndarray]:
  """Returns the weights of the same model, all layers in one stack."""
  single = unscanned(num_layers)
  weights = {"token_embedder.embedding": single["token_embedder.embedding"]}
  for name in layer_values(0):
    weights[f"decoder.layers.{name}"] = stack(
      (single[f"decoder.layers_{i}.{name}"] for i in range(num_layers)),
      scan_axis,
    )
  return weights


def scanned_gemma3(
  num_layers: int, scan_axis: int = 1
) -> dict[str, np.ndarray]:
  """Returns the same weights in blocks of six, the rest unstacked."""
  single = unscanned(num_layers)
  weights = {"token_embedder.embedding": single["token_embedder.embedding"]}
  blocks, rest = divmod(num_layers, 6)
  for name in layer_values(0):
    for place in range(6):
      weights[f"decoder.layers.layers_{place}.{name}"] = stack(
        (
          single[f"decoder.layers_{6 * block + place}.{name}"]
          for block in range(blocks)
        ),
        scan_axis,
      )
    for place in range(rest):
      weights[f"decoder.layers_remainder.layers_{place}.{name}"] = single[
        f"decoder.layers_{6 * blocks + place}.{name}"
      ]
  return weights


def scanned_gemma4(num_layers: int) -> dict[str, np.ndarray]:
  """Returns the same weights with five layers of each block stacked twice."""
  single = unscanned(num_layers)
  weights = {"token_embedder.embedding": single["token_embedder.embedding"]}
  blocks, rest = divmod(num_layers, 6)

  def layers(name: str, numbers: Iterable[int]) -> list[np.ndarray]:
    return [single[f"decoder.layers_{i}.{name}"] for i in numbers]

  for name in layer_values(0):
    local = [
      stack(layers(name, range(6 * block, 6 * block + 5)))
      for block in range(blocks)
    ]
    weights[f"decoder.scanned_blocks.local_layers.{name}"] = stack(local)
    weights[f"decoder.scanned_blocks.global_layer.{name}"] = stack(
      layers(name, range(5, num_layers, 6))
    )
    if rest:
      weights[f"decoder.layers_remainder.local_layers.{name}"] = stack(
        layers(name, range(6 * blocks, num_layers))
      )
  return weights


def write_maxtext(
  step: Path,
  weights: Arrays,
  *,
  updates: int | None = 4,
  custom: Mapping[str, Any] | None = None,
  **options: Any,
) -> Path:
  """Writes a step of MaxText; without `updates` weights only."""
  arrays = {f"params.params.{name}": x for name, x in weights.items()}
  if updates is not None:
    arrays["step"] = np.array(updates, np.int32)
    arrays["opt_state.0.count"] = np.array(updates, np.int32)
    arrays["opt_state.2.count"] = np.array(updates, np.int32)
    for name, values in _moments(weights):
      arrays[f"opt_state.0.{name}"] = values
  empty = () if updates is None else ("opt_state.1",)
  write_item(step / "items", arrays, empty=empty, **options)
  _write_step(step, {"items": _PYTREE}, custom)
  return step


def write_tunix(
  step: Path,
  weights: Arrays,
  *,
  updates: int | None = 4,
  adapter: str = "",
  custom: Mapping[str, Any] | None = None,
  **options: Any,
) -> Path:
  """Writes a step of Tunix with clipping; without `updates` weights only."""
  level = f"{adapter}." if adapter else ""
  handlers = {"model_params": _PYTREE_V0}
  write_item(
    step / "model_params",
    {f"{level}{name}.value": values for name, values in weights.items()},
    **options,
  )
  if updates is not None:
    state = {
      "step": np.array(updates, np.uint32),
      "opt_state.1.0.count": np.array(updates, np.int32),
      "opt_state.1.2.count": np.array(updates, np.int32),
    }
    for name, values in _moments(weights):
      slot, _, path = name.partition(".params.")
      state[f"opt_state.1.0.{slot}.{level}{path}"] = values
    write_item(
      step / "optimizer_state",
      {f"{name}.value": values for name, values in state.items()},
      **options,
    )
    handlers["optimizer_state"] = _PYTREE_V0
  _write_step(step, handlers, custom)
  return step


def _moments(weights: Arrays) -> Iterable[tuple[str, np.ndarray]]:
  for offset, slot in enumerate(SLOTS, start=1):
    for name, values in weights.items():
      yield f"{slot}.params.{name}", values + np.float32(offset / 4)


def write_item(
  directory: Path,
  arrays: Arrays,
  *,
  empty: Iterable[str] = (),
  zarr_format: int = 2,
  chunks: Mapping[str, tuple[int, ...]] | None = None,
) -> None:
  """Writes an item with the files that Orbax puts beside the arrays."""
  if zarr_format == 2 and not chunks:
    stores.write_plain_item(directory, arrays)
  else:
    stores.write_item(directory, arrays, zarr_format=zarr_format, chunks=chunks)
  write_side_files(directory, arrays, empty=empty, zarr_format=zarr_format)


def write_side_files(
  directory: Path,
  arrays: Arrays,
  *,
  empty: Iterable[str] = (),
  zarr_format: int = 2,
) -> None:
  """Writes `_METADATA`, `_sharding` and `array_metadatas` of an item."""
  tree = {
    str(tuple(name.split("."))): _entry(name, "jax.Array", skip=False)
    for name in arrays
  }
  for name in empty:
    tree[str(tuple(name.split(".")))] = _entry(name, "None", skip=True)
  metadata = {
    "tree_metadata": tree,
    "use_ocdbt": True,
    "use_zarr3": zarr_format == 3,
    "store_array_data_equal_to_fill_value": True,
    "custom_metadata": None,
  }
  (directory / "_METADATA").write_text(json.dumps(metadata))
  from relayout.metadata.sharding import shardings_bytes

  (directory / "_sharding").write_bytes(
    shardings_bytes(dict.fromkeys(arrays, _SHARDING))
  )
  entries = [
    {
      "array_metadata": {
        "param_name": name,
        "write_shape": list(values.shape),
        "chunk_shape": list(values.shape),
        "ext_metadata": None,
      }
    }
    for name, values in arrays.items()
  ]
  (directory / "array_metadatas").mkdir(exist_ok=True)
  (directory / "array_metadatas" / "process_0").write_text(
    json.dumps({"array_metadatas": entries})
  )


def _entry(name: str, value_type: str, *, skip: bool) -> dict[str, Any]:
  names = name.split(".")
  kinds = [2] * len(names)
  if names[0] == "opt_state" and names[-1] != "value" and names[1].isdecimal():
    kinds[1] = 1
  return {
    "key_metadata": [
      {"key": key, "key_type": kind}
      for key, kind in zip(names, kinds, strict=True)
    ],
    "value_metadata": {"value_type": value_type, "skip_deserialize": skip},
  }


def _write_step(
  step: Path, handlers: Mapping[str, str], custom: Mapping[str, Any] | None
) -> None:
  metadata = {
    "item_handlers": dict(handlers),
    "metrics": {},
    "performance_metrics": {},
    "init_timestamp_nsecs": 1,
    "commit_timestamp_nsecs": 2,
    "custom_metadata": dict(custom or {}),
  }
  (step / "_CHECKPOINT_METADATA").write_text(json.dumps(metadata))
  (step / "commit_success.txt").write_text("done\n")
