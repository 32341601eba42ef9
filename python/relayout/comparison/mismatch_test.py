"""Where arrays differ, by bits or by value, and how much."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relayout.comparison.mismatch import Extreme, Mismatch, merge, mismatch

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
  assert mismatch(values, values.copy()) is None


@pytest.mark.parametrize("dtype", _TYPES)
def test_one_element_differs(dtype):
  values = np.zeros((2, 3), dtype)
  other = values.copy()
  other[1, 2] = np.ones((), dtype)
  found = mismatch(values, other)
  assert found is not None
  assert found.count == 1
  assert found.largest.index == found.first.index == (1, 2)
  assert found.largest.difference == 1
  assert found.largest_relative.difference == 1
  assert found.first.a != found.first.b


def test_nan_equals_the_same_nan_only():
  quiet = np.array([0x7FC00000], np.uint32).view(np.float32)
  other = np.array([0x7FC00001], np.uint32).view(np.float32)
  assert mismatch(quiet, quiet.copy()) is None
  found = mismatch(quiet, other)
  assert found is not None
  assert found.first.a == "nan (bytes 0000c07f)"
  assert found.first.b == "nan (bytes 0100c07f)"
  assert found.largest.difference == 0


def test_minus_zero_is_not_zero():
  found = mismatch(np.array([0.0]), np.array([-0.0]))
  assert found is not None
  assert (found.first.a, found.first.b) == ("0.0", "-0.0")
  assert found.largest_relative.difference == 0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_scalars_and_empty_arrays(shape):
  values = np.zeros(shape, np.int32)
  assert mismatch(values, values.copy()) is None


def test_a_scalar_differs():
  found = mismatch(np.int32(3), np.int32(5))
  assert found is not None
  assert found.largest == Extreme(2.0, (), "3", "5")


def test_two_data_types_are_compared_by_value():
  values = np.array([1.0, 2.5, np.nan, np.inf, -0.0], np.float32)
  assert mismatch(values, values.astype(ml_dtypes.bfloat16)) is None
  values[1] = 2.501
  found = mismatch(values, values.astype(ml_dtypes.bfloat16))
  assert found is not None
  assert (found.count, found.first.index) == (1, (1,))
  assert found.largest.difference == pytest.approx(0.001, rel=1e-3)


def test_large_integers_are_exact():
  a = np.array([2**63, 2**53], np.uint64)
  found = mismatch(a, a + np.array([0, 1], np.uint64))
  assert found is not None
  assert found.largest.difference == 1
  assert mismatch(np.array([2**53]), np.array([2**53 + 1], np.uint64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_only_one_value_is_finite(value):
  found = mismatch(np.array([1.0, 9.0]), np.array([1.0, value]))
  assert found is not None
  assert found.largest.difference == math.inf
  assert found.largest_relative.difference == math.inf


def test_the_largest_differences_are_found():
  a = np.array([[1000.0, 1.0], [1e-9, 5.0]])
  b = np.array([[1001.0, 1.5], [-1e-9, 5.0]])
  found = mismatch(a, b)
  assert found is not None
  assert found.count == 3
  assert (found.largest.difference, found.largest.index) == (1, (0, 0))
  assert found.largest_relative.difference == 2
  assert found.largest_relative.index == (1, 0)


def test_blocks_add_up(monkeypatch):
  rng = np.random.default_rng(0)
  a = rng.integers(0, 4, (5, 7, 3)).astype(np.float32)
  b = rng.integers(0, 4, (3, 7, 5)).astype(np.float32).transpose(2, 1, 0)
  whole = mismatch(a, b)
  monkeypatch.setattr("relayout.comparison.mismatch._BLOCK", 4)
  assert mismatch(a, b) == whole


@given(
  hnp.arrays(np.int16, 20, elements=st.integers(0, 2)),
  hnp.arrays(np.int16, 20, elements=st.integers(0, 2)),
)
def test_counts_as_numpy_does(a, b):
  found = mismatch(a, b)
  differ = np.flatnonzero(a != b)
  assert (found.count if found else 0) == len(differ)
  if found:
    assert found.first.index == (differ[0],)
    assert found.largest.difference == np.abs(a - b).max()


def test_merging_keeps_the_extremes_and_counts_all():
  def extreme(size, *index):
    return Extreme(size, index, "a", "b")

  late = Mismatch(2, extreme(1, 9), extreme(7, 9), extreme(0.1, 9))
  early = Mismatch(3, extreme(2, 4), extreme(2, 4), extreme(0.5, 5))
  merged = Mismatch(5, extreme(2, 4), extreme(7, 9), extreme(0.5, 5))
  assert merge(late, early) == merge(early, late) == merged
  assert merge(None, late) == merge(late, None) == late
  assert merge(None, None) is None


def test_a_part_knows_where_it_is():
  found = mismatch(np.zeros((2, 2)), np.eye(2))
  assert found is not None
  assert found.at((10, 20)).first.index == (10, 20)
