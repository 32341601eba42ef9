"""Checks what the target's side files say against what is stored."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from relayout.errors import CorruptCheckpointError
from relayout.layouts import maxtext, stacking
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
from relayout.verify.oracle import Oracle
from relayout.verify.sides import Side

_MAX_SHOWN = 8


def check_structure(target: Side, step: Path) -> Iterator[Difference]:
  """Yields what the target's files say wrongly.

  Args:
    target: The target.
    step: Its step directory.
  """
  item = target.items[0]
  oracle = target.oracles[item.directory]
  yield from _check_store(item, oracle)
  if item.tree is None or item.tree.leaves is None:
    yield _file(tree_metadata.FILE_NAME, "missing or without a tree")
  else:
    yield from _check_tree(item.tree, item.tree.leaves, oracle)
  yield from _check_array_files(item, oracle)
  yield from _check_step(target, step)
  yield from _check_one_mode(target)


def _check_store(item: Item, oracle: Oracle) -> Iterator[Difference]:
  for key in oracle.stray_keys[:_MAX_SHOWN]:
    yield Difference(
      Kind.STORE, f"{maxtext.ITEM}/{key}", "a key that belongs to no array"
    )
  known = {leaf.name for leaf in item.leaves if leaf.spec is not None}
  for name in sorted(known ^ oracle.arrays.keys()):
    who = "relayout" if name in known else "TensorStore"
    yield Difference(
      Kind.STORE, f"{maxtext.ITEM}/{name}", f"only {who} finds this array"
    )


def _check_tree(
  tree: TreeMetadata, leaves: tuple[TreeLeaf, ...], oracle: Oracle
) -> Iterator[Difference]:
  yield from _check_names(leaves, oracle)
  yield from _check_formats(tree, oracle)
  for leaf in leaves:
    expected = _kinds(leaf.path.names)
    if leaf.path.kinds != expected:
      yield Difference(
        Kind.METADATA,
        f"{maxtext.ITEM}/{dotted(leaf.path.names)}",
        f"{tree_metadata.FILE_NAME} says {_words(leaf.path.kinds)}, expected "
        f"{_words(expected)}",
      )


def _check_names(
  leaves: tuple[TreeLeaf, ...], oracle: Oracle
) -> Iterator[Difference]:
  named = {dotted(leaf.path.names): leaf for leaf in leaves}
  for name, leaf in named.items():
    label = f"{maxtext.ITEM}/{name}"
    file = tree_metadata.FILE_NAME
    if leaf.is_empty and name in oracle.arrays:
      detail = f"{file} says {leaf.value_type}, and an array is stored"
      yield Difference(Kind.METADATA, label, detail)
    elif not leaf.is_empty and name not in oracle.arrays:
      detail = f"{file} names it, and the store has no such array"
      yield Difference(Kind.METADATA, label, detail)
  for name in sorted(oracle.arrays.keys() - named.keys()):
    detail = f"stored, and {tree_metadata.FILE_NAME} does not name it"
    yield Difference(Kind.METADATA, f"{maxtext.ITEM}/{name}", detail)


def _check_formats(tree: TreeMetadata, oracle: Oracle) -> Iterator[Difference]:
  """Checks that the flags of `_METADATA` tell the truth."""
  said = 3 if tree.use_zarr3 else 2
  wrong = [
    name for name, array in oracle.arrays.items() if array.formats != (said,)
  ]
  if wrong:
    formats = oracle.arrays[wrong[0]].formats
    yield _file(
      tree_metadata.FILE_NAME,
      f"use_zarr3 is {_json(tree.use_zarr3)}, but {len(wrong)} of "
      f"{len(oracle.arrays)} arrays are stored otherwise: {wrong[0]} as zarr "
      f"{' and '.join(f'v{number}' for number in formats)}",
    )
  if bool(tree.use_ocdbt) != oracle.is_ocdbt:
    yield _file(
      tree_metadata.FILE_NAME,
      f"use_ocdbt is {_json(tree.use_ocdbt)}, but the arrays are "
      f"{'in an OCDBT database' if oracle.is_ocdbt else 'in directories'}",
    )


def _kinds(path: KeyPath) -> tuple[KeyKind, ...]:
  """Returns the containers on a path: MaxText has one list, AdamW's members."""
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
      sharding.FILE_NAME, "missing; readers that name no sharding need it"
    )
  else:
    yield from _check_entries(sharding.FILE_NAME, shardings, oracle)
  entries = array_metadatas.read_array_metadatas(item.directory)
  if entries is not None:
    yield from _check_entries(array_metadatas.DIRECTORY_NAME, entries, oracle)
  if (item.directory / step_metadata.FILE_NAME).exists():
    yield _file(
      f"{maxtext.ITEM}/{step_metadata.FILE_NAME}",
      "belongs at the step; Orbax v1 refuses an item that contains it",
    )


def _check_entries(
  file: str, entries: Mapping[str, Any], oracle: Oracle
) -> Iterator[Difference]:
  for names, what in (
    (oracle.arrays.keys() - entries.keys(), "lacks"),
    (entries.keys() - oracle.arrays.keys(), "names what is not stored:"),
  ):
    if names:
      shown = ", ".join(sorted(names)[:_MAX_SHOWN])
      more = f" and {len(names) - _MAX_SHOWN} more" * (len(names) > _MAX_SHOWN)
      yield _file(file, f"{what} {shown}{more}")


def note_step(target: Side, step: Path) -> Iterator[str]:
  """Yields what the target step leaves unsaid, and no reader needs.

  Args:
    target: The target.
    step: Its step directory.
  """
  try:
    metadata = step_metadata.read_step_metadata(step)
  except CorruptCheckpointError:
    return  # a difference
  if metadata is None:
    yield f"the target step has no {step_metadata.FILE_NAME}"
  elif (
    target.mode != "unknown" and "scan_layers" not in metadata.custom_metadata
  ):
    yield (
      f"the target's {step_metadata.FILE_NAME} does not say scan_layers, so "
      f"MaxText must be told; by their names the layers are {target.mode}"
    )


def _check_step(target: Side, step: Path) -> Iterator[Difference]:
  """Checks the step's own metadata; an absent file says nothing wrong."""
  file = step_metadata.FILE_NAME
  try:
    metadata = step_metadata.read_step_metadata(step)
  except CorruptCheckpointError as error:
    yield _file(file, str(error))
    return
  if metadata is None:
    return
  handlers = metadata.item_handlers
  handler = (
    handlers.get(maxtext.ITEM) if isinstance(handlers, Mapping) else None
  )
  if handler != maxtext.HANDLER:
    yield _file(
      file,
      f"handler of {maxtext.ITEM} is {_json(handler)}, expected "
      f"{maxtext.HANDLER}",
    )
  said = metadata.custom_metadata.get("scan_layers")
  known = target.mode in ("scanned", "unscanned")
  if known and said not in (None, target.mode == "scanned"):
    yield _file(
      file,
      f"scan_layers is {_json(said)}, but by their names the layers are "
      f"{target.mode}",
    )


def _check_one_mode(target: Side) -> Iterator[Difference]:
  """Checks that no layer stands beside the stack of all."""
  by_mode: dict[str, str] = {}
  for stored in target.stored():
    path = stored.leaf.path.names
    if path[:2] == ("params", "params") and path[2:]:
      mode = stacking.scan_mode([path[2:]])
      by_mode.setdefault(mode, stored.label)
  if {"scanned", "unscanned"} <= by_mode.keys():
    yield Difference(
      Kind.LAYOUT,
      by_mode["unscanned"],
      f"an unscanned layer beside the scanned {by_mode['scanned']}",
    )


def _file(name: str, detail: str) -> Difference:
  return Difference(Kind.METADATA, name, detail)


def _json(value: object) -> str:
  return "absent" if value is None else json.dumps(value)
