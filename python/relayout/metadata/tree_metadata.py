"""`_METADATA`: the tree of an Orbax item, and how its arrays are stored."""

import ast
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relayout import errors
from relayout.metadata import safe_json
from relayout.metadata.json_value import JsonValue
from relayout.tree.key_path import KeyKind, TypedPath, dotted

FILE_NAME = "_METADATA"

EMPTY_VALUE_TYPES = frozenset(("None", "Dict", "List", "Tuple", "NamedTuple"))
"""Values of leaves that stand for an empty container, or for nothing."""

_TREE = "tree_metadata"
_MAX_LENGTH = (1 << 62) - 1
_MAX_KEY_TEXT = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class TreeLeaf:
  """One entry of the tree.

  Attributes:
    path: Where it stands.
    value_type: What was saved: `jax.Array`, `np.ndarray`, `scalar`, `string`,
      or one of `EMPTY_VALUE_TYPES`.
    skip_deserialize: Whether the store holds nothing for it.
    write_shape: Shape of one device's part, or None where Orbax keeps none.
  """

  path: TypedPath
  value_type: str
  skip_deserialize: bool
  write_shape: tuple[int, ...] | None

  @property
  def is_empty(self) -> bool:
    """Whether the leaf has no value: None, or an empty container."""
    return self.skip_deserialize or self.value_type in EMPTY_VALUE_TYPES


@dataclasses.dataclass(frozen=True, slots=True)
class TreeMetadata:
  """All of a `_METADATA` file.

  Attributes:
    leaves: In the file's order; None if the file has no tree.
    use_ocdbt: Whether the arrays are in an OCDBT database; None: not said.
    use_zarr3: Whether the arrays are zarr v3; None: not said.
    store_array_data_equal_to_fill_value: Whether chunks that equal the fill
      value are stored too; None: not said.
    custom_metadata: What the user put there.
    extra: Members that relayout doesn't know, for writing them again.
  """

  leaves: tuple[TreeLeaf, ...] | None
  use_ocdbt: bool | None = True
  use_zarr3: bool | None = False
  store_array_data_equal_to_fill_value: bool | None = True
  custom_metadata: Any = None
  extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def parse_tree_metadata(data: bytes, source: str) -> TreeMetadata:
  """Returns what the bytes of a `_METADATA` file say.

  Args:
    data: The file's bytes.
    source: Names the file, for messages.

  Raises:
    CorruptCheckpointError: If they are not what Orbax writes.
  """
  root = JsonValue(safe_json.loads(data, source), source)
  tree = root.get(_TREE)
  leaves = None if tree is None else _unique(_parse_leaves(tree), source)
  known = {_TREE, "custom_metadata", *_FLAGS}
  return TreeMetadata(
    leaves=leaves,
    custom_metadata=root.members().get("custom_metadata"),
    extra={k: v for k, v in root.members().items() if k not in known},
    **{flag: _parse_flag(root, flag) for flag in _FLAGS},
  )


def tree_metadata_bytes(metadata: TreeMetadata) -> bytes:
  """Returns the bytes of the `_METADATA` file, laid out as Orbax does."""
  value: dict[str, Any] = {
    _TREE: {
      str(leaf.path.names): _leaf_json(leaf) for leaf in metadata.leaves or ()
    }
  }
  for flag in _FLAGS:
    if getattr(metadata, flag) is not None:
      value[flag] = getattr(metadata, flag)
  value["custom_metadata"] = metadata.custom_metadata
  return json.dumps(value | dict(metadata.extra)).encode("utf-8")


_FLAGS = ("use_ocdbt", "use_zarr3", "store_array_data_equal_to_fill_value")


def _parse_flag(root: JsonValue, flag: str) -> bool | None:
  value = root.get(flag)
  return None if value is None else value.boolean()


def _parse_leaves(tree: JsonValue) -> Iterator[TreeLeaf]:
  for key, entry in tree.items():
    path = _parse_path(key, entry)
    yield _parse_leaf(path, entry["value_metadata"])


def _parse_path(key: str, entry: JsonValue) -> TypedPath:
  levels = entry.get("key_metadata")
  if levels is None:
    return TypedPath.of_dicts(_names_in(key, entry))
  if not isinstance(levels.value, list):
    levels.fail("an array of keys")
  keys = [_parse_key(level, levels, i) for i, level in enumerate(levels.value)]
  return TypedPath(
    tuple(name for name, _ in keys), tuple(kind for _, kind in keys)
  )


def _parse_key(level: Any, levels: JsonValue, i: int) -> tuple[str, KeyKind]:
  """Returns name and kind of one level; most are strings in a dict."""
  if type(level) is dict and level.get("key_type") == 2:
    name = level.get("key")
    if type(name) is str:
      return name, KeyKind.DICT
  value = JsonValue(level, levels, i)
  kind = KeyKind(value["key_type"].integer(minimum=1, maximum=2))
  name = value["key"].value
  if type(name) is int and name >= 0:
    name = str(name)
  elif not isinstance(name, str):
    value["key"].fail("a string")
  if kind is KeyKind.SEQUENCE and not (name.isascii() and name.isdigit()):
    value["key"].fail("an index, as the key is one of a sequence")
  return name, kind


def _names_in(key: str, entry: JsonValue) -> tuple[str, ...]:
  """Returns the names in `key`, which spells a tuple as Python does."""
  names: Any = None
  if len(key) <= _MAX_KEY_TEXT:
    try:
      names = ast.literal_eval(key)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
      names = None
  if not isinstance(names, tuple) or not all(
    isinstance(name, str) for name in names
  ):
    entry.fail("key_metadata, or a key that is a tuple of names, for")
  return names


def _parse_leaf(path: TypedPath, value: JsonValue) -> TreeLeaf:
  skip = value.get("skip_deserialize")
  write_shape = value.get("write_shape")
  return TreeLeaf(
    path=path,
    value_type=value["value_type"].text(),
    skip_deserialize=skip is not None and skip.boolean(),
    write_shape=None
    if write_shape is None
    else write_shape.integers(minimum=0, maximum=_MAX_LENGTH),
  )


def _unique(leaves: Iterator[TreeLeaf], source: str) -> tuple[TreeLeaf, ...]:
  """Returns `leaves`, no two of which may share a name in the store."""
  by_name: dict[str, TreeLeaf] = {}
  for leaf in leaves:
    name = dotted(leaf.path.names)
    if name in by_name:
      raise errors.CorruptCheckpointError(
        f"{source}: the key paths {by_name[name].path.names} and"
        f" {leaf.path.names} both name the array {name!r}"
      )
    by_name[name] = leaf
  return tuple(by_name.values())


def _leaf_json(leaf: TreeLeaf) -> dict[str, Any]:
  value: dict[str, Any] = {
    "value_type": leaf.value_type,
    "skip_deserialize": leaf.skip_deserialize,
  }
  if leaf.write_shape is not None:
    value["write_shape"] = list(leaf.write_shape)
  return {"key_metadata": _keys_json(leaf.path), "value_metadata": value}


def _keys_json(path: TypedPath) -> Sequence[Mapping[str, Any]]:
  return [
    {"key": name, "key_type": int(kind)}
    for name, kind in zip(path.names, path.kinds, strict=True)
  ]
