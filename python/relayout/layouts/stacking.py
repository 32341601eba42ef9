"""Tells from names whether layers are scanned.

Unscanned layers are called `layers_0`, `layers_1` and so on; a scanned model
has one `layers`.
"""

import dataclasses
import re
from collections.abc import Iterable

from relayout.errors import LayoutError
from relayout.layouts.state import ScanMode, StateKey
from relayout.tree.key_path import KeyPath

_LAYER = re.compile(r"(?P<stack>[A-Za-z][A-Za-z_]*?)_(?P<index>0|[1-9][0-9]*)")
_STACKS = ("layers", "dense_layers", "moe_layers", "scanned_blocks")
_SCANNED = (*_STACKS, "layers_remainder")
_ROOT = "decoder"


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
  if len(path) < 3 or path[0] != _ROOT:
    return None
  match = _LAYER.fullmatch(path[1])
  if match and match["stack"] in _STACKS:
    template = (path[0], match["stack"], *path[2:])
    return LayerName(template, match["stack"], int(match["index"]))
  if path[1] in _STACKS and path[2].isdecimal() and len(path) > 3:
    return LayerName((path[0], path[1], *path[3:]), path[1], int(path[2]))
  return None


def scan_mode(paths: Iterable[KeyPath]) -> ScanMode:
  """Tells from the names of the weights whether the layers are scanned.

  A scanned model may have some layers by themselves beside its stacks.
  """
  mode: ScanMode = "unknown"
  for path in paths:
    if split_layer(path):
      mode = "unscanned"
    elif len(path) > 2 and path[0] == _ROOT and path[1] in _SCANNED:
      return "scanned"
  return mode


def check_unmixed(keys: Iterable[StateKey]) -> None:
  """Checks that no leaf is there twice.

  Neither in a stack and layer by layer, nor in two spellings of its layer.

  Raises:
    LayoutError: If one is.
  """
  known = set(keys)
  spelled: dict[tuple[StateKey, int], StateKey] = {}
  for key in known:
    layer = split_layer(key.path) if key.path else None
    if layer is None:
      continue
    stacked = dataclasses.replace(key, path=layer.template)
    if stacked in known:
      raise _mixed(stacked, key)
    other = spelled.setdefault((stacked, layer.index), key)
    if other != key:
      raise LayoutError(f"{other} and {key} are one leaf in two spellings")


def _mixed(stacked: StateKey, single: StateKey) -> LayoutError:
  return LayoutError(
    f"{single} is a layer by itself, and {stacked} a stack of layers: the "
    "checkpoint holds leaves of two models"
  )
