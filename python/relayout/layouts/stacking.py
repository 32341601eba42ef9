"""Layer names, and how layers form stacks.

Unscanned layers are called `layers_0`, `layers_1` and so on; a scanned model
has one `layers`, whose arrays have the layer axis at `SCAN_AXIS`.
"""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from relayout.errors import LayoutError
from relayout.layouts.state import ScanMode, StateKey
from relayout.tree.key_path import KeyPath, dotted

SCAN_AXIS = 1
"""MaxText's default `param_scan_axis`."""

_LAYER = re.compile(r"(?P<stack>[A-Za-z][A-Za-z_]*?)_(?P<index>0|[1-9][0-9]*)")
_STACKS = ("layers", "dense_layers", "moe_layers", "scanned_blocks")
_FLAT_ROOT = "decoder"
_FLAT_STACK = "layers"


@dataclasses.dataclass(frozen=True, slots=True)
class LayerName:
  """A path that goes through one layer of an unscanned model.

  Attributes:
    template: The path with the layer's number removed.
    stack: Name of the layers, such as `layers`.
    index: Number of the layer.
  """

  template: KeyPath
  stack: str
  index: int


def split_layer(path: KeyPath) -> LayerName | None:
  """Returns the layer that `path` goes through, or None.

  Reads `decoder.layers_3...` and `decoder.layers.3...`.
  """
  if len(path) < 3 or path[0] != _FLAT_ROOT:
    return None
  match = _LAYER.fullmatch(path[1])
  if match and match["stack"] in _STACKS:
    template = (path[0], match["stack"], *path[2:])
    return LayerName(template, match["stack"], int(match["index"]))
  if path[1] in _STACKS and path[2].isdecimal() and len(path) > 3:
    return LayerName((path[0], path[1], *path[3:]), path[1], int(path[2]))
  return None


def scan_mode(paths: Iterable[KeyPath]) -> ScanMode:
  """Tells from the names of the weights whether the layers are scanned."""
  for path in paths:
    if split_layer(path):
      return "unscanned"
    if len(path) > 2 and path[0] == _FLAT_ROOT and path[1] in _STACKS:
      return "scanned"
  return "unknown"


def scan_axis(rank: int) -> int:
  """Returns where the layer axis goes in an array of `rank` axes.

  MaxText stacks at axis 1 and appends the axis to vectors and scalars.
  """
  return min(SCAN_AXIS, rank)


def stack_flat(
  keys: Iterable[StateKey],
) -> Mapping[StateKey, tuple[StateKey, ...]]:
  """Groups the leaves of a flat family: all layers form one stack.

  Args:
    keys: Leaves of an unscanned state.

  Returns:
    For each leaf of the scanned state, the leaves it is made of: one that is
    no part of a layer by itself, else one per layer, layer 0 first.

  Raises:
    LayoutError: If layers are missing, differ from each other, or are not
      called `layers_<i>`.
  """
  single: dict[StateKey, tuple[StateKey, ...]] = {}
  layers: dict[StateKey, dict[int, StateKey]] = defaultdict(dict)
  for key in keys:
    layer = split_layer(key.path) if key.path else None
    if layer is None:
      single[key] = (key,)
      continue
    _check_flat(layer, key)
    stacked = dataclasses.replace(key, path=layer.template)
    other = layers[stacked].setdefault(layer.index, key)
    if other != key:
      raise LayoutError(f"{other} and {key} are both of layer {layer.index}")
  stacks = _in_order(layers)
  for key in single.keys() & stacks.keys():
    raise _mixed(key, stacks[key][0])
  return single | stacks


def check_unmixed(keys: Iterable[StateKey]) -> None:
  """Checks that no leaf is there twice, in a stack and layer by layer.

  Raises:
    LayoutError: If one is.
  """
  known = set(keys)
  for key in known:
    layer = split_layer(key.path) if key.path else None
    if layer is None:
      continue
    stacked = dataclasses.replace(key, path=layer.template)
    if stacked in known:
      raise _mixed(stacked, key)


def _mixed(stacked: StateKey, single: StateKey) -> LayoutError:
  return LayoutError(
    f"{single} is a layer by itself, and {stacked} a stack of layers: the "
    "checkpoint holds leaves of two models"
  )


def _check_flat(layer: LayerName, key: StateKey) -> None:
  if layer.stack != _FLAT_STACK:
    raise LayoutError(
      f"{dotted(key.path)}: a flat family calls its layers `layers_<i>`, and "
      f"this one is in `{layer.stack}`. Name the model with --model_name"
    )


def _in_order(
  layers: Mapping[StateKey, Mapping[int, StateKey]],
) -> dict[StateKey, tuple[StateKey, ...]]:
  count = 1 + max((i for found in layers.values() for i in found), default=-1)
  result = {}
  for stacked, found in layers.items():
    if len(found) != count:
      missing = list(islice((i for i in range(count) if i not in found), 9))
      raise LayoutError(
        f"{stacked}: layers {_listed(sorted(found))} have this leaf, layers "
        f"{_listed(missing)} do not, of {count} in all. Layers of a flat "
        "family are alike: name the model with --model_name, or keep the "
        "layers unscanned with --scan_layers=keep"
      )
    result[stacked] = tuple(found[i] for i in range(count))
  return result


def _listed(numbers: Sequence[int]) -> str:
  shown = ", ".join(map(str, numbers[:8]))
  return shown + (" ..." if len(numbers) > 8 else "")
