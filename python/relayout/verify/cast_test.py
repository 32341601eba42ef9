"""Casts round once, to the nearest, half to even."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.verify.cast import cast

_TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


def _nearest(value, dtype):
  """Returns the nearest values of `dtype`, by exact arithmetic."""
  info = ml_dtypes.finfo(dtype)
  candidates = cast(np.array([value]), dtype).astype(np.float64)
  step = max(abs(value) * float(info.eps), float(info.smallest_subnormal))
  around = np.array([value - step, value, value + step])
  candidates = {*candidates, *around.astype(dtype).astype(np.float64)}
  exact = Fraction(value)
  return min(abs(Fraction(x) - exact) for x in candidates if np.isfinite(x))


@pytest.mark.parametrize("dtype", _TYPES)
@given(value=st.floats(-200, 200))
def test_nothing_is_nearer(dtype, value):
  found = float(cast(np.array([value]), dtype)[0])
  assert abs(Fraction(found) - Fraction(value)) == _nearest(value, dtype)


def test_a_double_is_rounded_once():
  """By way of float32, this one would be rounded down to a tie, and to 1."""
  value = np.array([1 + 2**-8 + 2**-40])
  assert float(cast(value, ml_dtypes.bfloat16)[0]) == 1 + 2**-7
  value = np.array([-(1 + 2**-8 + 2**-40), np.inf, -np.inf, np.nan, 0.0, -0.0])
  found = cast(value, ml_dtypes.bfloat16)
  assert float(found[0]) == -(1 + 2**-7)
  assert [str(x) for x in found[1:]] == ["inf", "-inf", "nan", "0", "-0"]


def test_a_tie_goes_to_the_even_one():
  ties = np.array([1 + 2**-8, 1 + 3 * 2**-8], np.float32)
  found = cast(ties, ml_dtypes.bfloat16).astype(np.float32)
  assert found.tolist() == [1, 1 + 2**-6]


def test_too_large_becomes_infinite():
  assert np.isinf(float(cast(np.array([1e300]), ml_dtypes.bfloat16)[0]))
  assert np.isinf(cast(np.array([1e300]), np.float16)[0])
