"""A hash that does not depend on how an array is cut."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.comparison import slabs
from relayout.diff.fingerprint import Fingerprint

_TYPES = [
  np.bool_,
  np.int8,
  np.float16,
  np.float32,
  np.int64,
  np.complex128,
  ml_dtypes.bfloat16,
  ml_dtypes.int4,
]


def _hash(values, step=None):
  """Returns the hash of an array that is added in parts, last part first."""
  values = np.asarray(values)
  found = Fingerprint(values.shape)
  for slab in reversed([*slabs.slabs(values.shape, step or values.shape)]):
    found.add(values[slab], tuple(axis.start for axis in slab))
  return found.hex()


@pytest.mark.parametrize("dtype", _TYPES)
def test_any_parts_in_any_order(dtype):
  values = np.random.default_rng(0).integers(0, 8, (5, 4, 7)).astype(dtype)
  whole = _hash(values)
  assert len(whole) == 32
  for step in ((1, 1, 1), (2, 3, 7), (5, 1, 2)):
    assert _hash(values, step) == whole


@given(st.integers(0, 59), st.integers(0, 31))
def test_every_bit_counts(place, bit):
  values = np.arange(60, dtype=np.uint32).reshape(3, 20)
  other = values.copy()
  other.reshape(-1)[place] ^= np.uint32(1 << bit)
  assert _hash(values) != _hash(other)


def test_the_order_of_elements_counts():
  values = np.arange(24, dtype=np.float32).reshape(4, 6)
  swapped = values[[0, 2, 1, 3]]
  assert _hash(values) != _hash(swapped)
  assert _hash(values) == _hash(values.reshape(24))


def test_scalars_and_empty_arrays():
  assert _hash(np.float32(1)) != _hash(np.float32(2))
  assert _hash(np.zeros((0, 3))) == _hash(np.zeros((2, 0)))


def test_a_view_that_is_not_contiguous():
  values = np.arange(24, dtype=np.float32).reshape(4, 6)
  copied = np.ascontiguousarray(values.T)
  assert _hash(values.T) == _hash(copied)


def test_large_arrays_are_added_in_blocks(monkeypatch):
  values = np.random.default_rng(0).random((9, 11))
  whole = _hash(values)
  monkeypatch.setattr("relayout.diff.fingerprint._BLOCK", 8)
  assert _hash(values) == whole
