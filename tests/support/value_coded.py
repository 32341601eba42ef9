"""Value-coded models, unscanned and as MaxText scans them.

Layer i is filled with i, expert e of it with 100 i + e; a fraction tells the
elements of a layer apart.  The scanned forms are put together with NumPy, by
the rule of MaxText and without any code of ours.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

type Arrays = dict[str, np.ndarray]
"""Values by dotted path in the model."""

EMBEDDING = "token_embedder.embedding"
GATE_BIAS = "DeepSeekMoeBlock_0.MoeBlock_0.gate.bias"
"""A leaf that is no `nnx.Param`, which MaxText stacks at axis 0."""

_EXPERTS_OF = "MoeBlock_0.wi_0"
_STEP = 1 / 4096
_NUM_ELEMENTS = 7  # a length that no number of layers here has

_ATTENTION: Mapping[str, tuple[int, ...]] = {
  "self_attention.query.kernel": (4, 2, 3),
  "self_attention.out.kernel": (2, 3, 4),
  "pre_norm.scale": (4,),
}
_WIDE_ATTENTION = {
  "self_attention.query.kernel": (4, 2, 6),
  "self_attention.out.kernel": (2, 6, 4),
  "pre_norm.scale": (4,),
}
_DENSE = {"mlp.wi.kernel": (4, 5), "mlp.wo.kernel": (5, 4)}
_EXPERTS = {
  _EXPERTS_OF: (3, 4, 5),
  "MoeBlock_0.gate.kernel": (4, 3),
}
_LINEAR_ATTENTION = {
  "linear_attention.conv.kernel": (2, 4),
  "linear_attention.a_log": (2,),
}


@dataclasses.dataclass(frozen=True)
class Stack:
  """Layers that a scanned model has under one name.

  Attributes:
    scanned: The name, below `decoder`.
    layers: Names of the layers, below `decoder`, nested as the scans are; a
      single name for a layer that stands alone.
    shapes: Shapes of a layer's leaves.
  """

  scanned: str
  layers: Sequence
  shapes: Mapping[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class Model:
  """A model in any form.

  Attributes:
    pattern: What `--layer_pattern` takes.
    stacks: Its layers.
    has_optimizer: Whether checkpoints of it have moments.
  """

  pattern: str
  stacks: tuple[Stack, ...]
  has_optimizer: bool = False

  def unscanned(self) -> Arrays:
    """Returns the leaves with each layer for itself."""
    result = _outside()
    for stack in self.stacks:
      for layer in _flat(stack.layers):
        for leaf, shape in stack.shapes.items():
          result[f"decoder.{layer}.{leaf}"] = _values(layer, leaf, shape)
    return result

  def scanned(self, axis: int) -> Arrays:
    """Returns the leaves with layers stacked at `axis`, MaxText's option."""
    result = _outside()
    for stack in self.stacks:
      for leaf, shape in stack.shapes.items():
        result[f"decoder.{stack.scanned}.{leaf}"] = _stack(
          stack.layers, leaf, shape, axis
        )
    return result

  def layer_axes(self, axis: int) -> dict[str, tuple[int, ...]]:
    """Returns which axes of each stacked leaf count layers."""
    result = {}
    for stack in self.stacks:
      for leaf, shape in stack.shapes.items():
        marks = (_NUM_ELEMENTS,) * len(shape)
        found = _stack(stack.layers, leaf, marks, axis).shape
        name = f"decoder.{stack.scanned}.{leaf}"
        result[name] = tuple(
          i for i, n in enumerate(found) if n != _NUM_ELEMENTS
        )
    return result


def _outside() -> Arrays:
  embedding = np.arange(32, dtype=np.float32).reshape(8, 4)
  return {
    EMBEDDING: embedding + 5000,
    "decoder.decoder_norm.scale": np.arange(4, dtype=np.float32) + 6000,
  }


def _flat(layers: Sequence) -> Iterator[str]:
  if isinstance(layers, str):
    yield layers
    return
  for each in layers:
    yield from _flat(each)


def _values(layer: str, leaf: str, shape: tuple[int, ...]) -> np.ndarray:
  number = int(layer.rpartition("_")[2])
  fraction = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * _STEP
  if leaf.endswith(_EXPERTS_OF):
    experts = np.arange(shape[0], dtype=np.float32)
    return (100 * number + experts)[:, None, None] + fraction
  return (number + fraction).astype(np.float32)


def _stack(
  layers: Sequence, leaf: str, shape: tuple[int, ...], axis: int
) -> np.ndarray:
  """Scans, the innermost first, each at `axis` if there are so many axes."""
  if isinstance(layers, str):
    return _values(layers, leaf, shape)
  parts = [_stack(each, leaf, shape, axis) for each in layers]
  at_front = leaf == GATE_BIAS or parts[0].ndim < axis
  return np.stack(parts, 0 if at_front else axis)


def _names(stack: str, numbers: range) -> list[str]:
  return [f"{stack}_{i}" for i in numbers]


def _layers(numbers: range) -> list[str]:
  return _names("layers", numbers)


def _gemma3() -> Model:
  """Fourteen layers: two blocks of six, and two that remain."""
  shapes = {**_ATTENTION, **_DENSE}
  blocks = [
    Stack(f"layers.layers_{i}", _layers(range(i, 12, 6)), shapes)
    for i in range(6)
  ]
  rest = [
    Stack(f"layers_remainder.layers_{i}", f"layers_{12 + i}", shapes)
    for i in range(2)
  ]
  return Model("gemma3", (*blocks, *rest))


def _gemma4() -> Model:
  """Two blocks of five local and a global layer, and two local ones."""
  local = {**_ATTENTION, **_DENSE}
  whole = {**_WIDE_ATTENTION, **_DENSE}
  return Model(
    "gemma4",
    (
      Stack(
        "scanned_blocks.local_layers",
        [_layers(range(5)), _layers(range(6, 11))],
        local,
      ),
      Stack("scanned_blocks.global_layer", _layers(range(5, 12, 6)), whole),
      Stack("layers_remainder.local_layers", _layers(range(12, 14)), local),
    ),
  )


def _llama4() -> Model:
  """Two cycles of four: dense and expert layers in turn."""
  kinds = [{**_ATTENTION, **_DENSE}, {**_ATTENTION, **_EXPERTS}]
  return Model(
    "cycle:4",
    tuple(
      Stack(f"layers.layers_{i}", _layers(range(i, 8, 4)), kinds[i % 2])
      for i in range(4)
    ),
  )


def _qwen3_next() -> Model:
  """Two blocks of three linear and a full attention layer, and one more."""
  linear = {**_LINEAR_ATTENTION, **_EXPERTS}
  full = {**_ATTENTION, **_EXPERTS}
  return Model(
    "qwen3_next",
    (
      Stack(
        "layers.local_layers",
        [_layers(range(3)), _layers(range(4, 7))],
        linear,
      ),
      Stack("layers.global_layer", _layers(range(3, 8, 4)), full),
      Stack("layers_remainder.local_layers", _layers(range(8, 9)), linear),
    ),
  )


def _deepseek() -> Model:
  dense = {**_ATTENTION, **_DENSE}
  experts = {
    **_ATTENTION,
    f"DeepSeekMoeBlock_0.{_EXPERTS_OF}": (3, 4, 5),
    GATE_BIAS: (3,),
  }
  return Model(
    "deepseek",
    (
      Stack("dense_layers", _names("dense_layers", range(2)), dense),
      Stack("moe_layers", _names("moe_layers", range(3)), experts),
    ),
    has_optimizer=True,
  )


MODELS: Mapping[str, Model] = {
  "flat": Model(
    "flat",
    (Stack("layers", _layers(range(4)), {**_ATTENTION, **_DENSE}),),
    has_optimizer=True,
  ),
  "experts": Model(
    "flat", (Stack("layers", _layers(range(3)), {**_ATTENTION, **_EXPERTS}),)
  ),
  "gemma3": _gemma3(),
  "gemma4": _gemma4(),
  "llama4": _llama4(),
  "qwen3_next": _qwen3_next(),
  "deepseek": _deepseek(),
}
"""Models by name, one for each way in which layers are grouped."""

MOMENTS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
  "mu": lambda values: -values - 1,
  "nu": lambda values: values * 2,
}
"""The moments of a weight, in checkpoints of these models."""


def maxtext(
  weights: Mapping[str, np.ndarray], updates: int | None
) -> dict[str, Arrays]:
  """Returns what MaxText stores, by item.

  Args:
    weights: Leaves of the model, by path.
    updates: Updates of AdamW so far; None: weights only.
  """
  if updates is None:
    return {"items": {f"params.params.{k}": v for k, v in weights.items()}}
  items: Arrays = {
    "step": np.int32(updates),
    "opt_state.0.count": np.int32(updates),
    "opt_state.2.count": np.int32(updates),
  }
  for name, values in weights.items():
    if name.endswith(GATE_BIAS):
      items[f"nnx_aux.model.{name}"] = values
      continue
    items[f"params.params.{name}"] = values
    for slot, moment in MOMENTS.items():
      items[f"opt_state.0.{slot}.params.{name}"] = moment(values)
  return {"items": items}


def tunix(
  weights: Mapping[str, np.ndarray], updates: int | None
) -> dict[str, Arrays]:
  """Returns what Tunix stores, by item, its AdamW behind a clipping.

  Arguments are those of `maxtext`.
  """
  found = {"model_params": {f"{k}.value": v for k, v in weights.items()}}
  if updates is None:
    return found
  optimizer: Arrays = {
    "step.value": np.uint32(updates),
    "opt_state.1.0.count.value": np.int32(updates),
    "opt_state.1.2.count.value": np.int32(updates),
  }
  for name, values in weights.items():
    if not name.endswith(GATE_BIAS):
      for slot, moment in MOMENTS.items():
        optimizer[f"opt_state.1.0.{slot}.{name}.value"] = moment(values)
  return found | {"optimizer_state": optimizer}


STORED: Mapping[str, Callable[..., dict[str, Arrays]]] = {
  "maxtext": maxtext,
  "tunix": tunix,
}
"""What a trainer stores of a model, by its layout."""
