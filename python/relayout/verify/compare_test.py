"""Comparing stored arrays: any chunking, any limit, exact positions."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import Role, StateKey, StoredLeaf
from relayout.metadata.item import open_item
from relayout.verify.compare import compare_all
from relayout.verify.matching import Comparison
from relayout.verify.oracle import open_oracle
from tests.support import stores

_KEY = StateKey(Role.WEIGHT, ("decoder", "layers", "kernel"))


def _stored(directory: Path) -> dict[str, StoredLeaf]:
  item = open_item(directory)
  return {leaf.name: StoredLeaf(item, leaf) for leaf in item.leaves}


def _compare(source: Path, target: Path, names, *, stacked: bool, limit: int):
  """Compares array `t` of the target with arrays of the source."""
  left, right = _stored(source), _stored(target)
  layers = tuple(range(len(names))) if stacked else None
  comparison = Comparison(
    _KEY, tuple(left[name] for name in names), right["t"], layers, len(names)
  )
  oracles = {path: open_oracle(path) for path in (source, target)}
  [found] = compare_all(
    [comparison], lambda leaf: oracles[leaf.item.directory], limit
  )
  return found


@st.composite
def _cases(draw):
  shape = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=3)))
  num_layers = draw(st.integers(1, 4))
  axis = min(1, len(shape))
  full = (*shape[:axis], num_layers, *shape[axis:])
  chunks = tuple(draw(st.integers(1, n)) for n in full)
  source_chunks = tuple(draw(st.integers(1, n)) for n in shape)
  changed = draw(st.sets(st.integers(0, int(np.prod(full)) - 1), max_size=3))
  return shape, num_layers, axis, chunks, source_chunks, changed


@settings(max_examples=25, deadline=None)
@given(
  case=_cases(),
  zarr_format=st.sampled_from([2, 3]),
  limit=st.sampled_from([1, 200, 1 << 20]),
)
def test_a_stack_equals_its_layers_but_for_what_was_changed(
  case, zarr_format, limit
):
  shape, num_layers, axis, chunks, source_chunks, changed = case
  layers = {
    f"l{i}": np.random.default_rng(i).standard_normal(shape, np.float32)
    for i in range(num_layers)
  }
  stack = np.stack(list(layers.values()), axis)
  for position in changed:
    stack.reshape(-1)[position] += 1
  with tempfile.TemporaryDirectory() as directory:
    source, target = Path(directory, "s"), Path(directory, "t")
    stores.write_item(
      source, layers, chunks=dict.fromkeys(layers, source_chunks)
    )
    stores.write_item(
      target, {"t": stack}, chunks={"t": chunks}, zarr_format=zarr_format
    )
    found = _compare(source, target, list(layers), stacked=True, limit=limit)
  assert found.problem is None
  assert found.axis == axis
  assert (found.mismatch.count if found.mismatch else 0) == len(changed)
  if changed:
    first = np.unravel_index(min(changed), stack.shape)
    assert found.mismatch.first == tuple(map(int, first))
    assert found.mismatch.target_value == str(stack[first])


def _difference(tmp_path, source, target, *, stacked=True):
  stores.write_item(tmp_path / "s", source)
  stores.write_item(tmp_path / "t", {"t": target})
  found = _compare(
    tmp_path / "s", tmp_path / "t", list(source), stacked=stacked, limit=1 << 20
  )
  assert found.problem is not None
  return found.problem


def test_a_transposed_stack_says_where_the_layers_are(tmp_path):
  layers = {f"l{i}": np.ones((3, 5), np.float32) for i in range(4)}
  found = _difference(tmp_path, layers, np.ones((4, 3, 5), np.float32))
  assert found.kind == "shape"
  assert "[4, 3, 5], expected [3, 4, 5]" in found.detail
  assert "the layers are at axis 0, and MaxText has them at 1" in found.detail


def test_a_short_stack_says_how_many_layers_it_has(tmp_path):
  layers = {f"l{i}": np.ones((3, 5), np.float32) for i in range(4)}
  found = _difference(tmp_path, layers, np.ones((3, 2, 5), np.float32))
  assert "it holds 2 layers, the source has 4" in found.detail


def test_another_type_is_a_difference_though_values_are_equal(tmp_path):
  source = {"a": np.ones(3, np.float32)}
  found = _difference(tmp_path, source, np.ones(3, np.float64), stacked=False)
  assert found.kind == "dtype"
  assert "float64, expected float32" in found.detail


def test_zero_size_arrays_are_equal(tmp_path):
  stores.write_item(tmp_path / "s", {"a": np.ones((0, 3), np.float32)})
  stores.write_item(tmp_path / "t", {"t": np.ones((0, 3), np.float32)})
  found = _compare(
    tmp_path / "s", tmp_path / "t", ["a"], stacked=False, limit=1
  )
  assert found.mismatch is None
  assert found.problem is None


def test_an_unreadable_source_is_no_difference_but_an_error(tmp_path):
  stores.write_item(tmp_path / "s", {"a": np.random.default_rng(0).random(900)})
  stores.write_item(tmp_path / "t", {"t": np.zeros(900)})
  left, right = _stored(tmp_path / "s"), _stored(tmp_path / "t")
  comparison = Comparison(_KEY, (left["a"],), right["t"])
  oracles = {
    path: open_oracle(path) for path in (tmp_path / "s", tmp_path / "t")
  }
  for path in (tmp_path / "s" / "d").iterdir():
    path.write_bytes(b"")
  with pytest.raises(CorruptCheckpointError, match="array a"):
    list(
      compare_all([comparison], lambda x: oracles[x.item.directory], 1 << 20)
    )


_LARGE = 24 << 20
_PROGRAM = """
import resource, sys
from pathlib import Path
from relayout.verify import compare_test
source, target, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
compare_test._compare(source, target, ["l0"], stacked=True, limit=limit)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
names = [f"l{i}" for i in range(4)]
found = compare_test._compare(source, target, names, stacked=True, limit=limit)
assert found.mismatch is None and found.problem is None, found
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_near_the_limit(tmp_path):
  """An array of 96 MiB is compared in a few MiB."""
  layer = np.arange(_LARGE // 4, dtype=np.float32).reshape(-1, 1 << 18)
  layers = {f"l{i}": layer + i for i in range(4)}
  chunk = (1, 1 << 18)
  stores.write_item(tmp_path / "s", layers, chunks=dict.fromkeys(layers, chunk))
  stores.write_item(
    tmp_path / "t",
    {"t": np.stack(list(layers.values()), 1)},
    chunks={"t": (1, 1, 1 << 18)},
  )
  out = subprocess.run(
    [sys.executable, "-c", _PROGRAM, tmp_path / "s", tmp_path / "t", "8388608"],
    check=True,
    capture_output=True,
    text=True,
    env={"PYTHONPATH": ":".join(sys.path)},
  )
  assert int(out.stdout) * 1024 < _LARGE
