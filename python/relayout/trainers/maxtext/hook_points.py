"""The places where a released program lets another function in."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from relayout.errors import UnsupportedError

_HASH = "__hash__"


@contextlib.contextmanager
def replaced(
  owner: Any, name: str, make: Callable[[Any], Any]
) -> Iterator[None]:
  """Replaces an attribute of a module or class for a while.

  Args:
    owner: The module or class.
    name: Name of the attribute.
    make: Returns what takes its place; is given the attribute.

  Raises:
    UnsupportedError: If there is no such attribute: another version.
  """
  original = getattr(owner, name, None)
  if original is None:
    raise UnsupportedError(
      f"{getattr(owner, '__name__', owner)} has no {name}: relayout knows the "
      "programs of MaxText 0.2.5 with Tunix 0.1.7. Install these, or use "
      "relayout.trainers.tunix.installation.install in a program of your own"
    )
  setattr(owner, name, make(original))
  try:
    yield
  finally:
    setattr(owner, name, original)


@contextlib.contextmanager
def hashable(cls: type) -> Iterator[None]:
  """Gives a class without a hash that of its objects' identity, for a while.

  MaxText's configuration is an argument that JAX hashes, and as the object
  that post-training uses it can't be hashed.
  """
  if getattr(cls, _HASH) is not None:
    yield
    return
  setattr(cls, _HASH, object.__hash__)
  try:
    yield
  finally:
    setattr(cls, _HASH, None)
