"""Checks what the target's side files say against what is stored."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relayout.comparison.oracle import Oracle
from relayout.comparison.side import STACKS, Side
from relayout.errors import CorruptCheckpointError
from relayout.layouts.layers import canonical_layer, is_layer_number
from relayout.layouts.registry import LAYOUTS
from relayout.layouts.state import LayoutName, Role, StoredLeaf
from relayout.metadata import (
  array_metadatas,
  sharding,
  step_metadata,
  tree_metadata,
)
from relayout.metadata.item import Item
from relayout.metadata.tree_metadata import TreeLeaf, TreeMetadata
from relayout.tree.key_path import KeyKind, KeyPath, dotted
from relayout.verify.account import Difference, Kind

type _KindsOf = Callable[[KeyPath], tuple[KeyKind, ...]]
"""Returns the containers on a path."""

_MAX_SHOWN = 8


def check_structure(target: Side) -> Iterator[Difference]:
  """Yields what the target's files say wrongly."""
  for item in target.items:
    yield from _check_item(item, target, _kinds_in(target.step.layout))
  if target.aside is not None:
    yield from _check_item(target.aside, target, None)
  if not target.step.is_item:
    yield from _check_missing_items(target)
  yield from _check_step(target)
  yield from _check_one_mode(target)


def _check_item(
  item: Item, target: Side, kinds: _KindsOf | None
) -> Iterator[Difference]:
  oracle = target.oracles[item.directory]
  yield from _check_store(item, oracle)
  if item.tree is None or item.tree.leaves is None:
    yield _file(item, tree_metadata.FILE_NAME, "missing or without a tree")
  else:
    yield from _check_tree(item, item.tree, item.tree.leaves, oracle, kinds)
  yield from _check_array_files(item, oracle)


def _check_missing_items(target: Side) -> Iterator[Difference]:
  """Checks that the weights are there."""
  name = LAYOUTS[target.step.layout].items[0]
  if name not in target.step.items:
    yield Difference(Kind.MISSING, name, "the step has no such item")


def _check_store(item: Item, oracle: Oracle) -> Iterator[Difference]:
  for key in oracle.stray_keys[:_MAX_SHOWN]:
    yield Difference(
      Kind.STORE, f"{item.name}/{key}", "a key that belongs to no array"
    )
  known = {leaf.name for leaf in item.leaves if leaf.spec is not None}
  for name in sorted(known ^ oracle.arrays.keys()):
    who = "relayout" if name in known else "TensorStore"
    yield Difference(
      Kind.STORE, f"{item.name}/{name}", f"only {who} finds this array"
    )


def _check_tree(
  item: Item,
  tree: TreeMetadata,
  leaves: tuple[TreeLeaf, ...],
  oracle: Oracle,
  kinds: _KindsOf | None,
) -> Iterator[Difference]:
  yield from _check_names(item, leaves, oracle)
  yield from _check_formats(item, tree, oracle)
  for leaf in leaves:
    expected = kinds(leaf.path.names) if kinds else leaf.path.kinds
    if leaf.path.kinds != expected:
      yield Difference(
        Kind.METADATA,
        f"{item.name}/{dotted(leaf.path.names)}",
        f"{tree_metadata.FILE_NAME} says {_words(leaf.path.kinds)}, expected "
        f"{_words(expected)}",
      )


def _check_names(
  item: Item, leaves: tuple[TreeLeaf, ...], oracle: Oracle
) -> Iterator[Difference]:
  named = {dotted(leaf.path.names): leaf for leaf in leaves}
  for name, leaf in named.items():
    label = f"{item.name}/{name}"
    file = tree_metadata.FILE_NAME
    if leaf.is_empty and name in oracle.arrays:
      detail = f"{file} says {leaf.value_type}, and an array is stored"
      yield Difference(Kind.METADATA, label, detail)
    elif not leaf.is_empty and name not in oracle.arrays:
      detail = f"{file} names it, and the store has no such array"
      yield Difference(Kind.METADATA, label, detail)
  for name in sorted(oracle.arrays.keys() - named.keys()):
    detail = f"stored, and {tree_metadata.FILE_NAME} does not name it"
    yield Difference(Kind.METADATA, f"{item.name}/{name}", detail)


def _check_formats(
  item: Item, tree: TreeMetadata, oracle: Oracle
) -> Iterator[Difference]:
  """Checks that the flags of `_METADATA` tell the truth."""
  said = 3 if tree.use_zarr3 else 2
  wrong = [
    name for name, array in oracle.arrays.items() if array.formats != (said,)
  ]
  if wrong:
    formats = oracle.arrays[wrong[0]].formats
    yield _file(
      item,
      tree_metadata.FILE_NAME,
      f"use_zarr3 is {_json(tree.use_zarr3)}, but {len(wrong)} of "
      f"{len(oracle.arrays)} arrays are stored otherwise: {wrong[0]} as zarr "
      f"{' and '.join(f'v{number}' for number in formats)}",
    )
  if bool(tree.use_ocdbt) != oracle.is_ocdbt:
    yield _file(
      item,
      tree_metadata.FILE_NAME,
      f"use_ocdbt is {_json(tree.use_ocdbt)}, but the arrays are "
      f"{'in an OCDBT database' if oracle.is_ocdbt else 'in directories'}",
    )


def _kinds_in(layout: LayoutName) -> _KindsOf:
  """Returns what tells the containers on a path in a layout."""
  if layout == "maxtext":
    return _kinds_in_maxtext
  return lambda path: (KeyKind.DICT,) * len(path)


def _kinds_in_maxtext(path: KeyPath) -> tuple[KeyKind, ...]:
  """MaxText has one list, AdamW's members."""
  kinds = [KeyKind.DICT] * len(path)
  if path[0] == "opt_state" and path[1:] and path[1].isdecimal():
    kinds[1] = KeyKind.SEQUENCE
  return tuple(kinds)


def _words(kinds: tuple[KeyKind, ...]) -> str:
  return "/".join("list" if k is KeyKind.SEQUENCE else "dict" for k in kinds)


def _check_array_files(item: Item, oracle: Oracle) -> Iterator[Difference]:
  """Checks the two files that have an entry for each array."""
  shardings = sharding.read_shardings(item.directory)
  if shardings is None:
    yield _file(
      item, sharding.FILE_NAME, "missing; readers that name no sharding need it"
    )
  else:
    yield from _check_entries(item, sharding.FILE_NAME, shardings, oracle)
  entries = array_metadatas.read_array_metadatas(item.directory)
  if entries is not None:
    yield from _check_entries(
      item, array_metadatas.DIRECTORY_NAME, entries, oracle
    )
  if (item.directory / step_metadata.FILE_NAME).exists():
    yield _file(
      item,
      step_metadata.FILE_NAME,
      "belongs at the step; Orbax v1 refuses an item that contains it",
    )


def _check_entries(
  item: Item, file: str, entries: Mapping[str, Any], oracle: Oracle
) -> Iterator[Difference]:
  for names, what in (
    (oracle.arrays.keys() - entries.keys(), "lacks"),
    (entries.keys() - oracle.arrays.keys(), "names what is not stored:"),
  ):
    if names:
      shown = ", ".join(sorted(names)[:_MAX_SHOWN])
      more = f" and {len(names) - _MAX_SHOWN} more" * (len(names) > _MAX_SHOWN)
      yield _file(item, file, f"{what} {shown}{more}")


def note_step(target: Side) -> Iterator[str]:
  """Yields what the target step leaves unsaid, and no reader needs."""
  try:
    metadata = step_metadata.read_step_metadata(target.step.directory)
  except CorruptCheckpointError:
    return  # a difference
  if metadata is None:
    yield f"the target step has no {step_metadata.FILE_NAME}"
  elif (
    target.step.layout == "maxtext"
    and target.mode != "unknown"
    and "scan_layers" not in metadata.custom_metadata
  ):
    yield (
      f"the target's {step_metadata.FILE_NAME} does not say scan_layers, so "
      f"MaxText must be told; by their names the layers are {target.mode}"
    )


def _check_step(target: Side) -> Iterator[Difference]:
  """Checks the step's own metadata; an absent file says nothing wrong."""
  file = step_metadata.FILE_NAME
  try:
    metadata = step_metadata.read_step_metadata(target.step.directory)
  except CorruptCheckpointError as error:
    yield Difference(Kind.METADATA, file, str(error))
    return
  if metadata is None:
    return
  yield from _check_handlers(target, metadata.item_handlers)
  said = metadata.custom_metadata.get("scan_layers")
  known = target.mode in ("scanned", "unscanned")
  if known and said not in (None, target.mode == "scanned"):
    yield Difference(
      Kind.METADATA,
      file,
      f"scan_layers is {_json(said)}, but by their names the layers are "
      f"{target.mode}",
    )


def _check_handlers(
  target: Side, handlers: Mapping[str, Any] | str | None
) -> Iterator[Difference]:
  """Checks that each item is read by the handler that its layout names."""
  layout = LAYOUTS[target.step.layout]
  known = handlers if isinstance(handlers, Mapping) else {}
  for item in target.items:
    expected = layout.handlers[3 if item.use_zarr3 else 2]
    if known.get(item.name) != expected:
      yield Difference(
        Kind.METADATA,
        step_metadata.FILE_NAME,
        f"handler of {item.name} is {_json(known.get(item.name))}, expected "
        f"{expected}",
      )
  for name in () if target.step.is_item else known:
    if name not in target.step.items and name not in target.step.others:
      yield Difference(
        Kind.METADATA,
        step_metadata.FILE_NAME,
        f"names a handler of {name}, and there is no such item",
      )


def _check_one_mode(target: Side) -> Iterator[Difference]:
  """Checks that no layer stands beside the stack of all."""
  stacks: dict[KeyPath, StoredLeaf] = {}
  singles: dict[KeyPath, StoredLeaf] = {}
  for key, stored in target.state.with_role(Role.WEIGHT):
    path = canonical_layer(key.path)
    stack, _, number = path[1].rpartition("_") if path[1:] else ("", "", "")
    if stack in STACKS and is_layer_number(number):
      singles.setdefault((path[0], stack, *path[2:]), stored)
    else:
      stacks[path] = stored
  for path in sorted(singles.keys() & stacks.keys()):
    yield Difference(
      Kind.LAYOUT,
      singles[path].label,
      f"an unscanned layer beside the scanned {stacks[path].label}",
    )


def _file(item: Item, name: str, detail: str) -> Difference:
  return Difference(Kind.METADATA, f"{item.name}/{name}", detail)


def _json(value: object) -> str:
  return "absent" if value is None else json.dumps(value)
