"""MaxText's configuration, in either of its two kinds of objects."""

from typing import Any


def put(config: Any, name: str, value: Any) -> None:
  """Changes a value, as MaxText's programs do it themselves."""
  flat = getattr(config, "get_keys", None)
  if flat is not None:
    flat()[name] = value
  else:
    object.__setattr__(config, name, value)


def text(config: Any, name: str) -> str:
  """Returns a value that is a text; "" if it is missing or None."""
  return str(getattr(config, name, "") or "")
