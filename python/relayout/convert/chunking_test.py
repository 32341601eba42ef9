"""Chunk shapes for what is rewritten: laws."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from relayout.convert import chunking


@st.composite
def _blocks(draw):
  """Returns a shape, an order of its axes, an item size and a limit."""
  shape = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=5)))
  order = tuple(draw(st.permutations(range(len(shape)))))
  return (
    shape,
    order,
    draw(st.sampled_from([1, 2, 4])),
    draw(st.integers(1, 2 * 4 * math.prod(shape))),
  )


@hypothesis.settings(deadline=None)
@hypothesis.given(_blocks())
def test_a_slab_fits_unless_it_is_one_element(block):
  shape, _, itemsize, limit = block
  slab = chunking.slab(*block)
  assert len(slab) == len(shape)
  assert all(1 <= n <= most for n, most in zip(slab, shape, strict=True))
  assert math.prod(slab) * itemsize <= max(limit, itemsize)


@hypothesis.settings(deadline=None)
@hypothesis.given(_blocks())
def test_a_slab_is_one_stretch_of_the_blocks_memory(block):
  shape, order, _, _ = block
  slab = chunking.slab(*block)
  in_memory = [shape[axis] for axis in order]
  part = tuple(slice(slab[axis]) for axis in order)
  values = np.arange(math.prod(shape)).reshape(in_memory)[part].reshape(-1)
  np.testing.assert_array_equal(values, np.arange(math.prod(slab)))


@hypothesis.settings(deadline=None)
@hypothesis.given(_blocks())
def test_a_slab_is_at_least_a_third_of_what_fits(block):
  """Cutting evenly costs a part; more than that would be wasteful."""
  shape, order, itemsize, limit = block
  slab = chunking.slab(*block)
  if slab == shape or limit < itemsize:
    return
  cut = next(axis for axis in reversed(order) if slab[axis] < shape[axis])
  below = math.prod(slab) // slab[cut] * itemsize
  most = min(limit // below, shape[cut])
  assert slab[cut] * 3 >= most


@pytest.mark.parametrize(
  ("length", "most", "expected"),
  [(12, 5, 4), (7, 7, 7), (7, 6, 4), (13, 6, 5), (100, 30, 25)],
)
def test_axes_are_cut_evenly(length, most, expected):
  assert chunking.slab((length,), (0,), 1, most) == (expected,)


def test_the_slowest_axes_are_cut_first():
  assert chunking.slab((8, 6), (0, 1), 4, 24 * 2) == (2, 6)
  assert chunking.slab((8, 6), (1, 0), 4, 32 * 2) == (8, 2)
  assert chunking.slab((8, 6), (0, 1), 4, 12) == (1, 3)


def test_a_length_of_zero_gives_chunks_of_one():
  assert chunking.slab((0, 4), (0, 1), 4, 100) == (1, 4)


def test_a_cut_is_a_slab_in_c_order():
  assert chunking.cut((4, 6), 4, None) == (4, 6)
  assert chunking.cut((4, 6), 4, 10**9) == (4, 6)
  assert chunking.cut((4, 6), 4, 48) == (2, 6)


@pytest.mark.parametrize(
  ("limit", "expected"),
  [(16 << 20, 2 << 20), (1 << 20, 1 << 20), (1 << 40, 8 << 20)],
)
def test_units_are_a_share_of_the_memory_limit(limit, expected):
  assert chunking.unit_bytes(limit) == expected
