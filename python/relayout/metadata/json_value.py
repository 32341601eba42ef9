"""A JSON value that knows where it stands, so that messages can say so."""

from collections.abc import Iterator
from typing import Any, NoReturn

from relayout import errors

_MISSING = object()
_MAX_SHOWN = 80


class JsonValue:
  """A value within a parsed file; every accessor checks the type.

  All methods raise CorruptCheckpointError, naming the file and the place in it,
  if the value is not what they say.
  """

  __slots__ = ("_key", "_parent", "value")

  def __init__(
    self, value: Any, parent: "JsonValue | str", key: str | int | None = None
  ) -> None:
    """Wraps `value`, member `key` of `parent`, or all of the file `parent`."""
    self.value = value
    self._parent = parent
    self._key = key

  @property
  def where(self) -> str:
    """The file, and the way to the value in it."""
    if isinstance(self._parent, str):
      return self._parent
    return f"{self._parent.where}: {str(self._key)[:_MAX_SHOWN]}"

  def fail(self, expected: str) -> NoReturn:
    """Raises the error that the value is not `expected`."""
    shown = "nothing" if self.value is _MISSING else _show(self.value)
    raise errors.CorruptCheckpointError(
      f"{self.where}: expected {expected}, found {shown}"
    )

  def __contains__(self, key: str) -> bool:
    """Whether an object has a member `key`."""
    return key in self.members()

  def __getitem__(self, key: str) -> "JsonValue":
    """Member of an object; one that is absent fails when it is used."""
    return JsonValue(self.members().get(key, _MISSING), self, key)

  def get(self, key: str) -> "JsonValue | None":
    """Member of an object, or None if it is absent or null."""
    value = self.members().get(key)
    return None if value is None else JsonValue(value, self, key)

  def members(self) -> dict[str, Any]:
    """The object, unwrapped."""
    if not isinstance(self.value, dict):
      self.fail("an object")
    return self.value

  def items(self) -> Iterator[tuple[str, "JsonValue"]]:
    """Members of the object."""
    for key, value in self.members().items():
      yield key, JsonValue(value, self, key)

  def elements(self) -> list["JsonValue"]:
    """Elements of the array."""
    if not isinstance(self.value, list):
      self.fail("an array")
    return [JsonValue(value, self, i) for i, value in enumerate(self.value)]

  def text(self) -> str:
    """The string."""
    if not isinstance(self.value, str):
      self.fail("a string")
    return self.value

  def boolean(self) -> bool:
    """The boolean."""
    if not isinstance(self.value, bool):
      self.fail("true or false")
    return self.value

  def integer(self, *, minimum: int, maximum: int) -> int:
    """The integer, `minimum <= integer <= maximum`."""
    value = self.value
    if type(value) is not int or not minimum <= value <= maximum:
      self.fail(f"an integer from {minimum} to {maximum}")
    return value

  def integers(self, *, minimum: int, maximum: int) -> tuple[int, ...]:
    """The array of integers, each within the bounds."""
    if not isinstance(self.value, list):
      self.fail("an array of integers")
    for i, value in enumerate(self.value):
      if type(value) is not int or not minimum <= value <= maximum:
        JsonValue(value, self, i).fail(
          f"an integer from {minimum} to {maximum}"
        )
    return tuple(self.value)


def _show(value: Any) -> str:
  """Returns `value` in a few words; hostile values may be huge."""
  if isinstance(value, dict):
    return f"an object with {len(value)} members"
  if isinstance(value, list):
    return f"an array of {len(value)} elements"
  if isinstance(value, int) and abs(value) >= 1 << 128:
    return "an integer of more than 128 bits"
  if isinstance(value, str):
    return repr(value[:_MAX_SHOWN]) + ("..." if len(value) > _MAX_SHOWN else "")
  if value is None or isinstance(value, bool):
    return {None: "null", True: "true", False: "false"}[value]
  return repr(value)
