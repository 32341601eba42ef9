"""Databases whose nodes break the rules of OCDBT: refused, never a crash."""

import dataclasses

import pytest

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt import small_trees
from tests.corrupt.ocdbt_encoder import Child, Ref, Root


def _at(**change):
  def apply(children):
    return [children[0], dataclasses.replace(children[1], **change)]

  return apply


def test_a_tree_of_two_leaves_is_fine(attack):
  small_trees.write_tree(attack)
  attack.harmless()


@pytest.mark.parametrize(
  "change",
  [
    _at(key=b"a"),
    _at(key=b"0"),
    _at(key=b""),
    _at(key=b"c"),
    _at(key=b"b.value/1"),
    _at(subtree_prefix=2),
    _at(subtree_prefix=60000),
    _at(num_keys=1),
    _at(num_keys=3),
    _at(num_keys=0),
    _at(num_keys=2**63),
    _at(num_keys=2**64 - 2),
    _at(file=1),
    _at(file=2**32),
    _at(offset=2**63),
    _at(length=2**63),
    lambda children: children[:1],
    lambda children: children[::-1],
    lambda children: [*children, children[0]],
    lambda children: [*children, children[1]],
    lambda children: [
      dataclasses.replace(children[0], key=b"a.value/1"),
      children[1],
    ],
  ],
)
def test_inner_nodes_that_lie(attack, change):
  small_trees.write_tree(attack, change)
  attack.refused("model_params")


@pytest.mark.parametrize("height", [0, 2, 255])
def test_a_root_of_another_height(attack, height):
  small_trees.write_tree(attack, height=height)
  attack.refused("d/data")


@pytest.mark.parametrize("height", [1, 2, 3, 200])
def test_a_node_that_is_its_own_child(attack, height):
  """Heights fall on the way down, so a circle is a wrong height."""
  database = ocdbt.Database(attack.item)
  length = len(
    ocdbt.record(
      ocdbt.BTREE_NODE, ocdbt.interior([Child(b"a", 0, 60, 2)], height=height)
    )
  )
  child = Child(b"a", 0, length, 2)
  at = database.node(ocdbt.interior([child], height=height))
  assert (at.offset, at.length) == (0, length)
  database.write(ocdbt.manifest([Root(0, length, 2, height=height)]))
  attack.refused("d/data", "height")


def test_a_node_that_is_its_own_ancestor(attack):
  """Root -> middle -> root."""
  database = ocdbt.Database(attack.item)
  size = len(
    ocdbt.record(
      ocdbt.BTREE_NODE, ocdbt.interior([Child(b"a", 60, 60, 2)], height=2)
    )
  )
  for height, offset in ((2, size), (1, 0)):
    database.node(ocdbt.interior([Child(b"a", offset, size, 2)], height=height))
  assert database.next_offset == 2 * size
  database.write(ocdbt.manifest([Root(0, size, 2, height=2)]))
  attack.refused("d/data", "height")


def test_a_deep_tree_of_one_path(attack):
  """A chain of 255 nodes is odd, and no harm."""
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(small_trees.PLAIN))
  for height in range(1, 256):
    child = Child(b"a", at.offset, at.length, 2)
    at = database.node(ocdbt.interior([child], height=height))
  database.write(ocdbt.manifest([Root(at.offset, at.length, 2, height=255)]))
  attack.refused_or_harmless("model_params")


@pytest.mark.parametrize("says", [2**63, None])
def test_a_tree_that_shares_its_nodes(attack, says):
  """Each level doubles what it holds: 2**62 keys in a few kilobytes."""
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf([(b"", b"")]))
  num_keys = 1
  for height in range(1, 63):
    children = [
      Child(key, at.offset, at.length, num_keys, subtree_prefix=1)
      for key in (b"a", b"b")
    ]
    num_keys *= 2
    at = database.node(ocdbt.interior(children, height=height))
  root = Root(at.offset, at.length, says or num_keys, height=62)
  database.write(ocdbt.manifest([root]))
  attack.refused("model_params")


@pytest.mark.parametrize("levels", [10, 16, 24])
def test_a_tree_that_shares_its_nodes_within_the_limits(attack, levels):
  """Millions of keys in a few kilobytes take no memory to speak of."""
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf([(b"", b"x" * 100)]))
  num_keys = 1
  for height in range(1, levels + 1):
    children = [
      Child(key, at.offset, at.length, num_keys, subtree_prefix=1)
      for key in (b"a", b"b")
    ]
    num_keys *= 2
    at = database.node(ocdbt.interior(children, height=height))
  root = Root(at.offset, at.length, num_keys, height=levels)
  database.write(ocdbt.manifest([root]))
  attack.refused("model_params")


@pytest.mark.parametrize(
  "fields",
  [
    {"count": 0},
    {"count": 1},
    {"count": 3},
    {"count": 2**20},
    {"count": 2**40},
    {"count": 2**64 - 1},
    {"height": 1},
    {"height": 255},
    {"prefix_lengths": [16]},
    {"prefix_lengths": [60000]},
    {"prefix_lengths": [2**63]},
    {"suffix_lengths": [15, 12]},
    {"suffix_lengths": [2**16, 11]},
    {"suffix_lengths": [2**63, 11]},
    {"value_lengths": [len(small_trees.SIX), 25]},
    {"value_lengths": [len(small_trees.SIX) + 1, 24]},
    {"value_lengths": [2**63, 24]},
    {"value_lengths": [2**64 - 1, len(small_trees.SIX) + 25]},
    {"kinds": b"\0\1"},
    {"kinds": b"\0\2"},
    {"kinds": b"\0\xff"},
    {"trailing": b"\0"},
  ],
)
def test_leaves_that_lie(attack, fields):
  small_trees.write(attack, ocdbt.leaf(small_trees.PLAIN, **fields))
  attack.refused("d/data")


@pytest.mark.parametrize(
  "fields",
  [
    {"prefix_lengths": [1]},
    {"prefix_lengths": [15]},
    {"suffix_lengths": [0, 26]},
  ],
)
def test_other_keys_than_those_of_an_array(attack, fields):
  """Well-formed, but the names make no sense any more."""
  small_trees.write(attack, ocdbt.leaf(small_trees.PLAIN, **fields))
  attack.refused_or_harmless("model_params")


@pytest.mark.parametrize("order", ["reversed", "twice"])
def test_keys_that_do_not_increase(attack, order):
  entries = (
    small_trees.PLAIN[::-1]
    if order == "reversed"
    else [small_trees.PLAIN[0], *small_trees.PLAIN]
  )
  small_trees.write(attack, ocdbt.leaf(entries), len(entries))
  attack.refused("d/data", "does not follow")


def test_no_keys_at_all(attack):
  small_trees.write(attack, ocdbt.leaf([]), 0)
  attack.refused("d/data")


@pytest.mark.parametrize("file", [1, 2**31, 2**63])
def test_a_value_in_no_file(attack, file):
  small_trees.write(
    attack,
    ocdbt.leaf(
      [small_trees.PLAIN[0], (small_trees.PLAIN[1][0], Ref(0, 24, file=file))]
    ),
  )
  attack.refused("d/data", "data file")


@pytest.mark.parametrize("count", [2**20, 2**32, 2**40, 2**64 - 1])
def test_many_data_files_that_are_not_there(attack, count):
  body = b"\0" + ocdbt.varint(count) + ocdbt.leaf(small_trees.PLAIN)[2:]
  small_trees.write(attack, body)
  attack.refused("d/data", "data files")
