"""Which layers of a model share one array when MaxText scans it.

A group ties a name of the scanned model to the layers that are stacked under
it; a grouping has all groups of one model and renames leaves both ways.
"""

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from relayout.errors import LayoutError
from relayout.layouts.state import StateKey
from relayout.tree.key_path import KeyPath, dotted

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


@dataclasses.dataclass(frozen=True, slots=True)
class LayerGroup:
  """Layers that share one array in a scanned model.

  Attributes:
    scanned: Path of the layer in the scanned model, such as
      `("decoder", "layers", "layers_0")`.
    members: Path of each layer in the unscanned model, in C order over
      `lengths`.
    lengths: Number of layers along each stacked axis, outermost first; empty
      for a layer that is not stacked in the scanned model either.
  """

  scanned: KeyPath
  members: tuple[KeyPath, ...]
  lengths: tuple[int, ...]

  def __post_init__(self) -> None:
    if len(self.members) != math.prod(self.lengths):
      raise ValueError(f"{len(self.members)} layers do not fill {self.lengths}")


@dataclasses.dataclass(frozen=True, slots=True)
class ScannedLeaf:
  """A path of a scanned model, split at its group."""

  group: LayerGroup
  suffix: KeyPath


@dataclasses.dataclass(frozen=True, slots=True)
class UnscannedLeaf:
  """A path of an unscanned model, split at its layer.

  Attributes:
    group: The group that has the layer.
    number: Of the layer in `group.members`.
    suffix: The path inside the layer.
  """

  group: LayerGroup
  number: int
  suffix: KeyPath


@dataclasses.dataclass(frozen=True)
class Grouping:
  """All groups of layers of one model.

  Attributes:
    pattern: Text of the pattern that it follows.
    groups: The groups; no two share a name.
  """

  pattern: str
  groups: tuple[LayerGroup, ...]
  _scanned: Mapping[KeyPath, LayerGroup] = dataclasses.field(
    init=False, repr=False, compare=False
  )
  _members: Mapping[KeyPath, tuple[LayerGroup, int]] = dataclasses.field(
    init=False, repr=False, compare=False
  )

  def __post_init__(self) -> None:
    scanned = {group.scanned: group for group in self.groups}
    members = {
      member: (group, number)
      for group in self.groups
      for number, member in enumerate(group.members)
    }
    if len(scanned) != len(self.groups):
      raise ValueError(f"{self.pattern}: two groups have one scanned name")
    if len(members) != sum(len(group.members) for group in self.groups):
      raise ValueError(f"{self.pattern}: two groups have one layer")
    object.__setattr__(self, "_scanned", scanned)
    object.__setattr__(self, "_members", members)

  def split_scanned(self, path: KeyPath) -> ScannedLeaf | None:
    """Returns the group that a scanned model's leaf is in, or None."""
    canonical = canonical_layer(path)
    for length in range(len(canonical) - 1, 0, -1):
      group = self._scanned.get(canonical[:length])
      if group:
        return ScannedLeaf(group, canonical[length:])
    return None

  def split_unscanned(self, path: KeyPath) -> UnscannedLeaf | None:
    """Returns the layer that an unscanned model's leaf is in, or None.

    Reads `decoder.layers_3...` and `decoder.layers.3...`.
    """
    canonical = canonical_layer(path)
    for length in range(len(canonical) - 1, 0, -1):
      found = self._members.get(canonical[:length])
      if found:
        return UnscannedLeaf(*found, canonical[length:])
    return None

  def stack(
    self, keys: Iterable[StateKey]
  ) -> dict[StateKey, tuple[StateKey, ...]]:
    """Groups the leaves of an unscanned state.

    Args:
      keys: Leaves; each layer of a group must have the same.

    Returns:
      For each leaf of the scanned state, the leaves it is made of, in C order
      over the lengths of its group; a leaf outside the groups by itself.

    Raises:
      LayoutError: If layers of a group differ, or a leaf is there twice.
    """
    result: dict[StateKey, tuple[StateKey, ...]] = {}
    layers: dict[StateKey, tuple[LayerGroup, dict[int, StateKey]]] = {}
    for key in keys:
      leaf = self.split_unscanned(key.path)
      if leaf is None:
        result[key] = (key,)
        continue
      path = leaf.group.scanned + leaf.suffix
      stacked = dataclasses.replace(key, path=path)
      _, found = layers.setdefault(stacked, (leaf.group, {}))
      other = found.setdefault(leaf.number, key)
      if other != key:
        raise LayoutError(f"{other} and {key} are one leaf in two spellings")
    for stacked, (group, found) in layers.items():
      check_alike(self.pattern, group, str(stacked), found)
      if stacked in result:
        raise LayoutError(
          f"{found[0]} is a layer by itself, and {stacked} a stack of layers: "
          "the checkpoint holds leaves of two models"
        )
      result[stacked] = tuple(found[i] for i in range(len(group.members)))
    return result

  def unstack(self, key: StateKey) -> tuple[StateKey, ...]:
    """Returns the leaves that a scanned state's leaf holds.

    They are in C order over the lengths of the leaf's group; a leaf outside
    the groups is its own only part.
    """
    leaf = self.split_scanned(key.path)
    if leaf is None:
      return (key,)
    return tuple(
      dataclasses.replace(key, path=member + leaf.suffix)
      for member in leaf.group.members
    )


def layer_axes(
  depth: int, rank: int, *, scan_axis: int, at_front: bool = False
) -> tuple[int, ...]:
  """Returns where MaxText puts the layer axes of a stacked array.

  Each scan, the innermost first, puts its axis at `scan_axis`, or in front of
  all others if the array has fewer axes than that.

  Args:
    depth: Number of layer axes: `len(group.lengths)`.
    rank: Number of axes of one layer's array.
    scan_axis: MaxText's `param_scan_axis`.
    at_front: Whether the variable is no `nnx.Param` (random number state, the
      bias of a router): MaxText stacks those at axis 0.

  Returns:
    The positions in the stacked array, outermost scan first.
  """
  axes: tuple[int, ...] = ()
  for axes_so_far in range(rank, rank + depth):
    new = 0 if at_front or axes_so_far < scan_axis else scan_axis
    axes = (new, *(axis + (axis >= new) for axis in axes))
  return axes


def canonical_layer(path: KeyPath) -> KeyPath:
  """Returns `path` with `layers.3` at its second level spelt `layers_3`."""
  if len(path) > 3 and is_layer_number(path[2]):
    return (path[0], f"{path[1]}_{path[2]}", *path[3:])
  return path


def is_layer_number(name: str) -> bool:
  """Whether `name` is a number of at most nine digits, no leading zero."""
  return bool(_NUMBER.fullmatch(name))


def listed(things: Iterable[object]) -> str:
  """Returns the first eight of `things`, for messages."""
  shown = list(islice(things, 9))
  return ", ".join(map(str, shown[:8])) + (" ..." if len(shown) > 8 else "")


def check_alike(
  pattern: str, group: LayerGroup, leaf: str, numbers: Collection[int]
) -> None:
  """Checks that every layer of a group has a leaf.

  Args:
    pattern: Text of the pattern, for the message.
    group: The group.
    leaf: How messages name the leaf.
    numbers: Of the members that have it.

  Raises:
    LayoutError: If some have not; names them.
  """
  if len(numbers) == len(group.members):
    return
  missing = (m for i, m in enumerate(group.members) if i not in numbers)
  raise LayoutError(
    f"{leaf}: {len(numbers)} of {len(group.members)} layers have this leaf; "
    f"{listed(map(dotted, missing))} have not. Layers that the pattern "
    f"{pattern} stacks are alike: name the model with --model_name, or keep "
    "the layers unscanned with --scan_layers=keep"
  )
