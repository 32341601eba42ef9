"""Whether MaxText's pre-training can read the rng state of a checkpoint."""

from collections.abc import Sequence

from relayout.layouts.state import ScanMode, StoredLeaf
from relayout.layouts.variables import THREEFRY_WIDTH, UNSAFE_RBG_WIDTH

MAXTEXT_IMPL = "unsafe_rbg"

_IMPL_OF_WIDTH = {
  THREEFRY_WIDTH: "threefry2x32",
  UNSAFE_RBG_WIDTH: MAXTEXT_IMPL,
}


def key_impl(leaf: StoredLeaf) -> str:
  """Returns the key implementation of an rng key leaf.

  As recorded in `array_metadatas`; else by the width of the raw key.
  """
  recorded = leaf.leaf.random_key_impl
  spec = leaf.leaf.spec
  if recorded:
    return recorded
  if spec is None or not spec.shape:
    return "unknown"
  return _IMPL_OF_WIDTH.get(spec.shape[-1], "unknown")


def reason_to_leave_out(
  keys: Sequence[StoredLeaf], source_mode: ScanMode, target_mode: ScanMode
) -> str:
  """Returns why MaxText could not read these keys, or "" if it can.

  MaxText fails to resume when a key has another width than its own, and
  starts afresh without harm when the rng state is missing.
  """
  others = sorted({key_impl(key) for key in keys} - {MAXTEXT_IMPL})
  if others:
    return (
      f"rng keys are {', '.join(others)}, MaxText's pre-training reads "
      f"{MAXTEXT_IMPL} only; it starts with fresh rng state"
    )
  if source_mode != target_mode:
    return (
      f"rng state of a model that is {source_mode} has no counterpart in one "
      f"that is {target_mode}; MaxText starts with fresh rng state"
    )
  return ""
