"""Slabs cover an array once, in whole chunks, within the limit."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relayout.comparison import slabs

_AXES = st.lists(
  st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=0, max_size=4
)


@given(_AXES, st.integers(1, 8), st.integers(1, 4000))
def test_slabs_cover_an_array_once(axes, itemsize, limit):
  shape = tuple(length for length, _ in axes)
  chunk = tuple(size for _, size in axes)
  seen = np.zeros(shape, int)
  step = slabs.slab_shape(shape, chunk, itemsize, limit)
  count = 0
  for slab in slabs.slabs(shape, step):
    seen[slab] += 1
    count += slabs.num_elements(slab)
  assert (seen == 1).all()
  assert count == math.prod(shape)


@given(_AXES, st.integers(1, 8), st.integers(1, 4000))
def test_slabs_are_whole_chunks_within_the_limit(axes, itemsize, limit):
  shape = tuple(length for length, _ in axes)
  chunk = tuple(size for _, size in axes)
  step = slabs.slab_shape(shape, chunk, itemsize, limit)
  one = math.prod(map(min, shape, chunk)) * itemsize
  assert math.prod(step) * itemsize <= max(limit, one)
  for length, size, got in zip(shape, chunk, step, strict=True):
    assert got == length or got % size == 0


def test_a_large_limit_takes_all_at_once():
  assert slabs.slab_shape((64, 4, 128), (32, 1, 64), 4, 1 << 30) == (64, 4, 128)


def test_a_small_limit_takes_one_chunk():
  assert slabs.slab_shape((64, 4, 128), (32, 1, 64), 4, 1) == (32, 1, 64)


def test_slabs_of_more_chunks_than_fit_memory_start_at_once():
  found = slabs.slabs((1 << 30, 1 << 28), (1, 1))
  assert next(found) == (slice(0, 1), slice(0, 1))
  assert next(found) == (slice(0, 1), slice(1, 2))
  assert slabs.num_slabs((1 << 30, 1 << 28), (1, 1)) == 1 << 58


def test_blocks_hold_no_more_than_the_limit():
  found = list(slabs.blocks((3, 10), 7))
  assert all(slabs.num_elements(block) <= 7 for block in found)
  assert sum(map(slabs.num_elements, found)) == 30
