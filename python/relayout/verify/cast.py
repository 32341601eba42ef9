"""Rounds to the nearest value of another data type, half to even, once."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  import numpy as np


def cast(values: "np.ndarray[Any, Any]", dtype: Any) -> Any:
  """Returns `values` as `dtype`, each rounded once.

  Types that NumPy lacks round a float64 twice, by way of float32; rounding to
  odd first makes the second the only one that counts.
  """
  import numpy as np

  narrow = np.dtype(dtype)
  with np.errstate(all="ignore"):
    if values.dtype == np.float64 and narrow.kind == "V":
      values = _to_odd(values)
    return values.astype(narrow)


def _to_odd(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
  """Returns float64 as float32: inexact ones with the last bit set."""
  import numpy as np

  near = values.astype(np.float32)
  away = np.abs(near.astype(np.float64)) > np.abs(values)
  towards_zero = np.where(away, np.nextafter(near, np.float32(0)), near)
  inexact = np.isfinite(values) & (near.astype(np.float64) != values)
  bits = towards_zero.view(np.uint32) | inexact.astype(np.uint32)
  return np.where(inexact, bits.view(np.float32), near)
