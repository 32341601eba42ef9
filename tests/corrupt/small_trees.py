"""Small databases, whole or changed, for attacks on their parts."""

import dataclasses

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt.ocdbt_encoder import Child, Root

SIX = ocdbt.zarray([2, 3])
PLAIN = ocdbt.entries({"a.value": SIX})


def write(attack, body, num_keys=2, **fields):
  """Writes a leaf as the root."""
  ocdbt.Database(attack.item).write_leaf(body, num_keys, **fields)


def two_leaves(database):
  """Adds two leaves; returns the children that refer to them."""
  children = []
  for name in ("a", "b"):
    entries = ocdbt.entries({f"{name}.value": SIX})
    at = database.node(ocdbt.leaf(entries))
    children.append(Child(name.encode(), at.offset, at.length, 2))
  return children


def write_tree(attack, change=lambda children: children, **fields):
  """Writes a root of height 1, its children changed."""
  database = ocdbt.Database(attack.item)
  children = change(two_leaves(database))
  at = database.node(ocdbt.interior(children))
  root = Root(at.offset, at.length, 4, height=1)
  database.write(ocdbt.manifest([dataclasses.replace(root, **fields)]))
