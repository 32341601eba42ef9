"""Works out the groups of layers of one model, given its family's pattern.

The pattern says what is grouped; names and shapes only say how many layers
there are.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from relayout.errors import LayoutError, UnsupportedError
from relayout.layouts import variables
from relayout.layouts.layers import (
  Grouping,
  LayerGroup,
  canonical_layer,
  check_alike,
  is_layer_number,
  layer_axes,
  listed,
)
from relayout.layouts.patterns import ROOT, Pattern, Run, Slot
from relayout.tree.key_path import KeyPath, dotted

_MAX_LAYERS = 10_000
"""Bounds what a hostile shape makes us list."""

_LAYER_LIKE = re.compile(r"(\w+_)?(layers|blocks)(_\w+)?|pipeline_module")
_BLOCK_MEMBER = re.compile(r"layers?_[0-9]+|local_layers|global_layer")


def stacks_at_front(path: KeyPath) -> bool:
  """Whether MaxText stacks a leaf at axis 0: all that is no `nnx.Param`."""
  return variables.is_rng(path) or variables.non_weight(path) is not None


def grouping_of_unscanned(
  pattern: Pattern, paths: Iterable[KeyPath]
) -> Grouping:
  """Works out the groups of a model from the names of its layers.

  Args:
    pattern: How its family groups layers.
    paths: Model paths of the unscanned model's leaves.

  Raises:
    LayoutError: If layers are missing, do not fit the pattern, lack leaves
      that others of their group have, or are called what the pattern's are
      not.
    UnsupportedError: If MaxText does not scan such a model.
  """
  _check_supported(pattern)
  numbers: dict[str, set[int]] = {run.name: set() for run in pattern.runs}
  leaves: dict[KeyPath, KeyPath] = {}
  for path in paths:
    found = _layer_number(pattern, path)
    if found is None:
      _check_no_layer(pattern, path, "unscanned")
      continue
    numbers[found[0]].add(found[1])
    other = leaves.setdefault(canonical_layer(path), path)
    if other != path:
      raise LayoutError(
        f"{dotted(other)} and {dotted(path)} are one leaf in two spellings"
      )
  groups: list[LayerGroup] = []
  for run in pattern.runs:
    groups += run.groups(_count_layers(pattern, run, numbers[run.name]))
  grouping = Grouping(pattern.text, tuple(groups))
  _check_alike(grouping, leaves)
  return grouping


def grouping_of_scanned(
  pattern: Pattern,
  shapes: Mapping[KeyPath, tuple[int, ...]],
  *,
  scan_axis: int = 1,
  at_front: Callable[[KeyPath], bool] = stacks_at_front,
) -> Grouping:
  """Works out the groups of a model from the layer axes of its arrays.

  Args:
    pattern: How its family groups layers.
    shapes: Shape of each leaf of the scanned model, by model path.
    scan_axis: MaxText's `param_scan_axis` when it made the model.
    at_front: Tells the leaves whose layer axes are in front of all others.

  Raises:
    LayoutError: If leaves have names that the pattern does not have, or
      disagree about the number of layers.
    UnsupportedError: If MaxText does not scan such a model.
  """
  _check_supported(pattern)
  evidence = {run.name: _Evidence(pattern, run) for run in pattern.runs}
  for path, shape in shapes.items():
    leaf = canonical_layer(path)
    place = _place(pattern, leaf)
    if place is None:
      _check_no_layer(pattern, path, "scanned")
      continue
    run, slot = place
    if slot is None:
      evidence[run.name].add_head(leaf)
      continue
    _check_no_block_member(pattern, slot, leaf)
    depth = (slot in run.block) + slot.nested
    evidence[run.name].add(
      slot, leaf, _lengths(pattern, leaf, shape, depth, scan_axis, at_front)
    )
  groups: list[LayerGroup] = []
  for run in pattern.runs:
    groups += run.groups(evidence[run.name].num_layers())
  return Grouping(pattern.text, tuple(groups))


class _Evidence:
  """What the leaves of a scanned model tell about one run of layers."""

  def __init__(self, pattern: Pattern, run: Run) -> None:
    self._pattern = pattern
    self._run = run
    self._head: set[int] = set()
    self._slots: set[Slot] = set()
    self._num_blocks: tuple[int, KeyPath] | None = None
    self._rest: dict[Slot, tuple[int, KeyPath]] = {}

  def add_head(self, path: KeyPath) -> None:
    """Takes in a leaf of a layer that is never stacked."""
    self._head.add(_number(path[1], self._run.name))

  def add(self, slot: Slot, path: KeyPath, lengths: tuple[int, ...]) -> None:
    """Takes in a leaf whose layer axes have these lengths.

    Raises:
      LayoutError: If an earlier leaf, or the pattern, has other lengths.
    """
    self._slots.add(slot)
    count = slot.stop - slot.start
    if slot in self._run.block:
      known, witness = self._num_blocks or (lengths[0], path)
      if known != lengths[0]:
        raise _disagreement(witness, known, path, lengths[0])
      if slot.nested and lengths[1] != count:
        raise LayoutError(
          f"{dotted(path)}: {lengths[1]} layers in a block, where the pattern "
          f"{self._pattern.text} has {count}. {_CAUSES}"
        )
      self._num_blocks = known, witness
      return
    found = lengths[0] if slot.nested else count
    known, witness = self._rest.setdefault(slot, (found, path))
    if known != found:
      raise _disagreement(witness, known, path, found)
    if not 1 <= found <= count:
      raise LayoutError(
        f"{dotted(path)}: {found} layers, where the pattern "
        f"{self._pattern.text} has 1 to {count} after the last full block. "
        f"{_CAUSES}"
      )

  def num_layers(self) -> int:
    """Returns the number of layers; 0 if the model has none.

    Raises:
      LayoutError: If a part of the pattern is missing.
    """
    run = self._run
    if not (self._slots or self._head):
      return 0
    for i in range(run.head):
      if i not in self._head:
        raise self._absent(run.layer(i))
    num_blocks = self._num_blocks[0] if self._num_blocks else 0
    if num_blocks:
      for slot in run.block:
        if slot not in self._slots:
          raise self._absent(slot.path)
    rest = 0
    for slot in run.remainder:
      if slot not in self._rest:
        continue
      if slot.start != rest:
        raise self._absent(run.remainder[run.remainder.index(slot) - 1].path)
      rest = slot.start + self._rest[slot][0]
    return run.head + num_blocks * run.block_size + rest

  def _absent(self, path: KeyPath) -> LayoutError:
    return LayoutError(
      f"no leaf below {dotted(path)}, which a scanned model of the pattern "
      f"{self._pattern.text} has. Is it another model?"
    )


_CAUSES = (
  "Likely causes: the model was scanned along another axis (MaxText's "
  "param_scan_axis), or it is another model"
)


def _disagreement(
  first: KeyPath, first_length: int, second: KeyPath, second_length: int
) -> LayoutError:
  return LayoutError(
    f"{dotted(first)} stacks {first_length} layers, {dotted(second)} "
    f"{second_length}. {_CAUSES}"
  )


def _lengths(
  pattern: Pattern,
  path: KeyPath,
  shape: tuple[int, ...],
  depth: int,
  scan_axis: int,
  at_front: Callable[[KeyPath], bool],
) -> tuple[int, ...]:
  """Returns the lengths of the layer axes, outermost scan first."""
  rank = len(shape) - depth
  if rank < 0:
    raise LayoutError(
      f"{dotted(path)}: shape {list(shape)} has no room for {depth} layer "
      f"axes, which the pattern {pattern.text} calls for"
    )
  axes = layer_axes(depth, rank, scan_axis=scan_axis, at_front=at_front(path))
  lengths = tuple(shape[axis] for axis in axes)
  if not all(1 <= length <= _MAX_LAYERS for length in lengths):
    raise LayoutError(
      f"{dotted(path)}: layer axes of {list(lengths)} in shape {list(shape)}, "
      f"where 1 to {_MAX_LAYERS} can be. {_CAUSES}"
    )
  return lengths


def _place(pattern: Pattern, path: KeyPath) -> tuple[Run, Slot | None] | None:
  """Returns where a scanned leaf belongs; without a slot: to a head."""
  for run in pattern.runs:
    for slot in (*run.block, *run.remainder):
      end = 1 + len(slot.name)
      if len(path) > end and path[:end] == slot.path:
        return run, slot
    for i in range(run.head):
      if len(path) > 2 and path[:2] == run.layer(i):
        return run, None
  return None


def _number(name: str, run: str) -> int:
  """Returns the layer number in `<run>_<number>`, or -1."""
  number = name.removeprefix(f"{run}_")
  return int(number) if number != name and is_layer_number(number) else -1


def _layer_number(pattern: Pattern, path: KeyPath) -> tuple[str, int] | None:
  """Returns the run and the number of the layer that `path` goes through."""
  leaf = canonical_layer(path)
  if len(leaf) < 3 or leaf[0] != ROOT:
    return None
  for run in pattern.runs:
    number = _number(leaf[1], run.name)
    if number >= 0:
      return run.name, number
  return None


def _count_layers(pattern: Pattern, run: Run, numbers: set[int]) -> int:
  """Returns the number of layers of a run, which must fit its pattern."""
  if not numbers:
    return 0
  count = max(numbers) + 1
  if len(numbers) != count:
    missing = (i for i in range(count) if i not in numbers)
    raise LayoutError(
      f"{ROOT}.{run.name}_{count - 1} is there, and {count - len(numbers)} "
      f"before it are not: {run.name} {listed(missing)}. The checkpoint is "
      "incomplete, or it holds a part of the model"
    )
  rest = (count - run.head) % run.block_size
  if count < run.head or (rest and not run.remainder):
    head = f" after the first {run.head}" if run.head else ""
    raise LayoutError(
      f"{count} layers {ROOT}.{run.name}_<i> do not fit the pattern "
      f"{pattern.text}, which has blocks of {run.block_size}{head} and no "
      "place for others. Name the model with --model_name, or keep the layers "
      "unscanned with --scan_layers=keep"
    )
  return count


def _check_supported(pattern: Pattern) -> None:
  if pattern.refusal:
    raise UnsupportedError(
      f"layer pattern {pattern.text}: {pattern.refusal}. Use --scan_layers=keep"
    )


def _check_no_layer(pattern: Pattern, path: KeyPath, mode: str) -> None:
  """Checks that a leaf outside all groups is no part of a layer.

  Scanned blocks hold random number state beside their layers.
  """
  if len(path) < 2 or path[0] != ROOT or not _LAYER_LIKE.fullmatch(path[1]):
    return
  if variables.is_rng(path):
    return
  if mode == "unscanned":
    names = [f"{run.name}_<i>" for run in pattern.runs]
  else:
    names = [dotted(slot.name) for run in pattern.runs for slot in run.block]
  raise LayoutError(
    f"{dotted(path)} looks like a part of a layer, and {mode} layers of the "
    f"pattern {pattern.text} are called {', '.join(names)}. Name the model "
    "with --model_name"
  )


def _check_no_block_member(pattern: Pattern, slot: Slot, path: KeyPath) -> None:
  inside = path[1 + len(slot.name)]
  if _BLOCK_MEMBER.fullmatch(inside):
    raise LayoutError(
      f"{dotted(path)}: {inside} is a layer of a block, and in the pattern "
      f"{pattern.text} each {dotted(slot.name)} is a single layer. Name the "
      "model with --model_name"
    )


def _check_alike(grouping: Grouping, leaves: Iterable[KeyPath]) -> None:
  """Checks that layers of a group have the same leaves, rng apart.

  An unscanned model stores its one random number state below some layer.
  """
  members: dict[KeyPath, set[int]] = {}
  for path in leaves:
    leaf = grouping.split_unscanned(path)
    if leaf is not None and not variables.is_rng(path):
      stacked = leaf.group.scanned + leaf.suffix
      members.setdefault(stacked, set()).add(leaf.number)
  for stacked, numbers in members.items():
    whole = grouping.split_scanned(stacked)
    assert whole is not None
    check_alike(grouping.pattern, whole.group, dotted(stacked), numbers)
