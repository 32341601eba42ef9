"""Comparing by bits: what NumPy calls equal may differ, and the reverse."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.verify import bits

_TYPES = [
  np.bool_,
  np.int8,
  np.uint32,
  np.int64,
  np.float16,
  np.float64,
  np.complex128,
  ml_dtypes.bfloat16,
  ml_dtypes.float8_e4m3fn,
  ml_dtypes.int4,
]


@pytest.mark.parametrize("dtype", _TYPES)
def test_equal_arrays(dtype):
  values = np.arange(6).reshape(2, 3).astype(dtype)
  assert bits.mismatch(values, values.copy()) is None


@pytest.mark.parametrize("dtype", _TYPES)
def test_one_element_differs(dtype):
  values = np.zeros((2, 3), dtype)
  other = values.copy()
  other[1, 2] = np.ones((), dtype)
  found = bits.mismatch(values, other)
  assert found is not None
  assert (found.count, found.first) == (1, (1, 2))
  assert found.source_value != found.target_value


def test_nan_equals_the_same_nan_only():
  quiet = np.array([0x7FC00000], np.uint32).view(np.float32)
  other = np.array([0x7FC00001], np.uint32).view(np.float32)
  assert bits.mismatch(quiet, quiet.copy()) is None
  found = bits.mismatch(quiet, other)
  assert found is not None
  assert found.source_value == "nan (bytes 0000c07f)"
  assert found.target_value == "nan (bytes 0100c07f)"


def test_minus_zero_is_not_zero():
  found = bits.mismatch(np.array([0.0]), np.array([-0.0]))
  assert found is not None
  assert (found.source_value, found.target_value) == ("0.0", "-0.0")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_scalars_and_empty_arrays(shape):
  values = np.zeros(shape, np.int32)
  assert bits.mismatch(values, values.copy()) is None


def test_a_view_that_is_not_contiguous():
  values = np.arange(24).reshape(2, 3, 4)
  assert bits.mismatch(values[:, 1], values.take(1, axis=1)) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=40))
def test_counts_as_numpy_does(pairs):
  source = np.array([a for a, _ in pairs], np.int16)
  target = np.array([b for _, b in pairs], np.int16)
  found = bits.mismatch(source, target)
  differ = np.flatnonzero(source != target)
  assert (found.count if found else 0) == len(differ)
  if found:
    assert found.first == (differ[0],)


def test_merging_keeps_the_first_and_counts_all():
  late = bits.Mismatch(2, (1, 0), "a", "b")
  early = bits.Mismatch(3, (0, 7), "c", "d")
  assert bits.merge(late, early) == bits.Mismatch(5, (0, 7), "c", "d")
  assert bits.merge(None, late) == bits.merge(late, None) == late
  assert bits.merge(None, None) is None
