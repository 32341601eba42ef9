"""Compares two training states leaf by leaf, bit by bit."""

import dataclasses
import hashlib

import numpy as np

from harness import tunix_source


def digests(state: tunix_source.TrainState) -> dict[str, str]:
  """Returns a text for each leaf that is equal only for equal leaves.

  An array's has its type, shape and the SHA-256 of its C-order bytes, a
  count's its value: MaxText keeps counts in types of its own.
  """
  result = {}
  for field in dataclasses.fields(state):
    value = getattr(state, field.name)
    if isinstance(value, dict):
      result |= {f"{field.name}/{k}": digest(a) for k, a in value.items()}
    else:
      result[field.name] = str(int(value))
  return result


def digest(array: np.ndarray) -> str:
  """Returns type, shape and the SHA-256 of the C-order bytes."""
  # ascontiguousarray makes a scalar one-dimensional: the shape is taken before.
  data = np.ascontiguousarray(array).tobytes()
  return f"{array.dtype}{list(array.shape)} {hashlib.sha256(data).hexdigest()}"


def differences(want: dict[str, str], got: dict[str, str]) -> list[str]:
  """Returns a line for each leaf that is missing, extra or different."""
  lines = [f"{k}: missing" for k in sorted(want.keys() - got.keys())]
  lines += [f"{k}: not expected" for k in sorted(got.keys() - want.keys())]
  lines += [
    f"{k}: expected {want[k]}, got {got[k]}"
    for k in sorted(want.keys() & got.keys())
    if want[k] != got[k]
  ]
  return lines
