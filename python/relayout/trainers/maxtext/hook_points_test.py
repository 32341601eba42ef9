"""What is replaced comes back, and what is missing is said."""

import types

import pytest

from relayout.errors import UnsupportedError
from relayout.trainers.maxtext.hook_points import hashable, replaced


def test_replaced_for_a_while():
  module = types.ModuleType("module")
  module.value = 1
  with replaced(module, "value", lambda old: old + 1):
    assert module.value == 2
  assert module.value == 1


def test_comes_back_after_an_error():
  module = types.ModuleType("module")
  module.value = 1
  with pytest.raises(KeyError), replaced(module, "value", lambda old: old + 1):
    raise KeyError
  assert module.value == 1


def test_a_missing_place_names_the_versions():
  module = types.ModuleType("module")
  with (
    pytest.raises(UnsupportedError, match=r"module has no value.*0\.2\.5"),
    replaced(module, "value", lambda old: old),
  ):
    pass


class _WithoutHash:
  def __eq__(self, other):
    return True


def test_hashable_for_a_while():
  config = _WithoutHash()
  with hashable(_WithoutHash):
    assert hash(config) == object.__hash__(config)
  with pytest.raises(TypeError, match="unhashable"):
    hash(config)


def test_a_hash_of_its_own_stays():
  own = str.__hash__
  with hashable(str):
    assert str.__hash__ is own
