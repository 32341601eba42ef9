"""Reading what corresponds: any chunks, any limit, stacks and layers."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayout.comparison.joints import Pair, join
from relayout.comparison.keys import Key
from relayout.comparison.leaves import Part
from relayout.comparison.oracle import open_oracle
from relayout.comparison.pieces import End, Piece, Unreadable, read_pieces
from relayout.errors import UnsupportedError
from relayout.layouts.layers import layer_axes
from relayout.layouts.state import StoredLeaf
from relayout.metadata.item import open_item
from tests.support import stores


class Store:
  """An item, with its leaves by name."""

  def __init__(self, directory: Path):
    item = open_item(directory)
    self._oracle = open_oracle(directory)
    self.leaves = {leaf.name: StoredLeaf(item, leaf) for leaf in item.leaves}

  def open(self, stored):
    return self._oracle.open(stored.leaf.name)

  def part(self, name, pins=()):
    return Part(self.leaves[name], pins)


def _read(a: Store, b: Store, pairs, limit):
  """Returns the values of both sides by key, put together from pieces."""
  directory = next(iter(a.leaves.values())).item.directory

  def open_array(stored):
    return (a if stored.item.directory == directory else b).open(stored)

  found = {pair.key: ([], []) for pair in pairs}
  for event in read_pieces(join(pairs), open_array, limit):
    assert not isinstance(event, Unreadable), event.reason
    if isinstance(event, Piece):
      for place, values in enumerate((event.a, event.b)):
        found[event.pair.key][place].append((event.start, np.array(values)))
  return {
    pair.key: tuple(_together(pair.a.shape, x) for x in found[pair.key])
    for pair in pairs
  }


def _together(shape, pieces):
  counts = np.zeros(shape, int)
  result = np.zeros(shape, pieces[0][1].dtype if pieces else float)
  for start, values in pieces:
    at = tuple(
      slice(first, first + length)
      for first, length in zip(start, values.shape, strict=True)
    )
    result[at] = values
    counts[at] += 1
  assert (counts == 1).all()
  return result


def _stack(layers, lengths, scan_axis):
  """Returns the stack as MaxText makes it, and where each layer is in it."""
  rank = layers[0].ndim
  axes = layer_axes(len(lengths), rank, scan_axis=scan_axis)
  stack = np.stack(layers).reshape(*lengths, *layers[0].shape)
  stack = np.moveaxis(stack, range(len(lengths)), axes)
  pins = [
    tuple(zip(axes, map(int, np.unravel_index(i, lengths)), strict=True))
    for i in range(len(layers))
  ]
  return np.ascontiguousarray(stack), pins


@st.composite
def _cases(draw):
  shape = tuple(draw(st.lists(st.integers(1, 5), min_size=0, max_size=3)))
  lengths = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
  axes = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
  num = int(np.prod(lengths))
  layers = [
    np.random.default_rng(i).standard_normal(shape, np.float32)
    for i in range(num)
  ]
  stacks = [_stack(layers, lengths, axis) for axis in axes]
  chunks = [
    tuple(draw(st.integers(1, n)) for n in stack.shape) for stack, _ in stacks
  ]
  layer_chunks = tuple(draw(st.integers(1, n)) for n in shape)
  return layers, stacks, chunks, layer_chunks


@settings(max_examples=30, deadline=None)
@given(
  case=_cases(),
  zarr_format=st.sampled_from([2, 3]),
  limit=st.sampled_from([1, 200, 1 << 20]),
  way=st.sampled_from(["stack", "unstack", "restack"]),
)
def test_each_element_of_each_layer_is_read_once(case, zarr_format, limit, way):
  layers, stacks, chunks, layer_chunks = case
  names = [f"l{i}" for i in range(len(layers))]
  with tempfile.TemporaryDirectory() as root:
    single, one, other = (Path(root, name) for name in ("s", "one", "other"))
    stores.write_item(
      single,
      dict(zip(names, layers, strict=True)),
      chunks=dict.fromkeys(names, layer_chunks),
    )
    for path, (stack, _), chunk in zip(
      (one, other), stacks, chunks, strict=True
    ):
      stores.write_item(
        path, {"t": stack}, chunks={"t": chunk}, zarr_format=zarr_format
      )
    parts = {
      "single": (Store(single), [(name, ()) for name in names]),
      "one": (Store(one), [("t", pins) for pins in stacks[0][1]]),
      "other": (Store(other), [("t", pins) for pins in stacks[1][1]]),
    }
    a, b = {
      "stack": ("single", "one"),
      "unstack": ("one", "single"),
      "restack": ("one", "other"),
    }[way]
    (first, a_parts), (second, b_parts) = parts[a], parts[b]
    pairs = [
      Pair(Key("weight", (name,)), first.part(*x), second.part(*y))
      for name, x, y in zip(names, a_parts, b_parts, strict=True)
    ]
    found = _read(first, second, pairs, limit)
  for name, values in zip(names, layers, strict=True):
    one_side, other_side = found[Key("weight", (name,))]
    assert one_side.tobytes() == values.tobytes()
    assert other_side.tobytes() == values.tobytes()


def test_whole_stacks_are_read_as_wholes(tmp_path):
  layers = [np.full((2, 3), i, np.float32) for i in range(4)]
  stacks = [_stack(layers, (2, 2), axis) for axis in (0, 1)]
  for name, (stack, _) in zip("ab", stacks, strict=True):
    stores.write_item(tmp_path / name, {"t": stack})
  a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
  pairs = [
    Pair(Key("weight", (str(i),)), a.part("t", x), b.part("t", y))
    for i, (x, y) in enumerate(zip(stacks[0][1], stacks[1][1], strict=True))
  ]
  [joint] = join(pairs)
  [couple] = joint.couples
  assert couple.pairs == tuple(pairs)
  [partly] = join(pairs[1:])
  assert len(partly.couples) == 3


def test_arrays_of_any_rank_and_zero_size(tmp_path):
  arrays = {"scalar": np.float32(3), "empty": np.zeros((0, 3), np.float32)}
  for name in "ab":
    stores.write_item(
      tmp_path / name, {k: np.asarray(v) for k, v in arrays.items()}
    )
  a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
  pairs = [Pair(Key("weight", (n,)), a.part(n), b.part(n)) for n in arrays]
  found = _read(a, b, pairs, 1)
  assert found[Key("weight", ("scalar",))] == (3, 3)
  assert found[Key("weight", ("empty",))][0].shape == (0, 3)


def test_damage_is_told_and_the_rest_is_read(tmp_path):
  for name in "ab":
    values = {"x": np.random.default_rng(0).random(900), "y": np.zeros(900)}
    stores.write_item(tmp_path / name, values)
  store = tmp_path / "b"
  stores.overwrite_key(store, "x/0", b"no zstd")
  a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
  pairs = [Pair(Key("weight", (n,)), a.part(n), b.part(n)) for n in "xy"]
  events = list(
    read_pieces(
      join(pairs),
      lambda x: (a if x.item.directory.name == "a" else b).open(x),
      1 << 20,
    )
  )
  [bad] = [event for event in events if isinstance(event, Unreadable)]
  assert bad.stored is b.leaves["x"]
  assert [e.pair.key.path for e in events if isinstance(e, Piece)] == [("y",)]
  assert sum(isinstance(event, End) for event in events) == 2


def test_more_chunks_than_can_be_read(tmp_path):
  """A few bytes may claim 2^58 chunks."""
  for name in "ab":
    stores.write_hollow_item(
      tmp_path / name, "x", shape=(1 << 30, 1 << 28), chunk=(1, 1)
    )
  a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
  pairs = [Pair(Key("weight", ("x",)), a.part("x"), b.part("x"))]
  with pytest.raises(UnsupportedError, match="Is it damaged"):
    _read(a, b, pairs, 1 << 20)


_LARGE = 24 << 20
_PROGRAM = """
import resource, sys
from pathlib import Path
from relayout.comparison import pieces_test
from relayout.comparison.joints import Pair, join
from relayout.comparison.keys import Key
from relayout.comparison.pieces import Piece, read_pieces
a, b = (pieces_test.Store(Path(path)) for path in sys.argv[1:3])
def pairs(num):
  return [
    Pair(Key("weight", (str(i),)), a.part(f"l{i}"), b.part("t", ((1, i),)))
    for i in range(num)
  ]
def read(num):
  def open_array(x):
    return (a if x.item.directory.name == "a" else b).open(x)
  for event in read_pieces(join(pairs(num)), open_array, int(sys.argv[3])):
    if isinstance(event, Piece):
      assert (event.a == event.b).all()
read(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read(4)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_near_the_limit(tmp_path):
  """An array of 96 MiB is compared in a few MiB."""
  layer = np.arange(_LARGE // 4, dtype=np.float32).reshape(-1, 1 << 18)
  layers = {f"l{i}": layer + i for i in range(4)}
  chunk = (1, 1 << 18)
  stores.write_item(tmp_path / "a", layers, chunks=dict.fromkeys(layers, chunk))
  stores.write_item(
    tmp_path / "b",
    {"t": np.stack(list(layers.values()), 1)},
    chunks={"t": (1, 1, 1 << 18)},
  )
  out = subprocess.run(
    [sys.executable, "-c", _PROGRAM, tmp_path / "a", tmp_path / "b", "8388608"],
    check=True,
    capture_output=True,
    text=True,
    env={"PYTHONPATH": ":".join(sys.path)},
  )
  assert int(out.stdout) * 1024 < _LARGE
