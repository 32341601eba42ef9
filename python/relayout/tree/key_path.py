"""Key paths: where a leaf stands in a tree."""

import dataclasses
import enum

type KeyPath = tuple[str, ...]
"""Names from the root to a leaf."""


class KeyKind(enum.IntEnum):
  """What container a key indexes; the values are those of Orbax `_METADATA`."""

  SEQUENCE = 1
  DICT = 2


@dataclasses.dataclass(frozen=True, slots=True)
class TypedPath:
  """A key path with the kind of container at each level."""

  names: KeyPath
  kinds: tuple[KeyKind, ...]

  @classmethod
  def of_dicts(cls, names: KeyPath) -> "TypedPath":
    """Returns the path whose every container is a dict."""
    return cls(names, (KeyKind.DICT,) * len(names))


def dotted(path: KeyPath) -> str:
  """Returns the store name of a leaf: Orbax joins key paths with dots."""
  return ".".join(path)
