"""The encoder of hostile databases writes sound ones, too."""

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt import small_trees
from tests.corrupt.ocdbt_encoder import Child, Root
from tests.support import stores


def test_the_encoder_agrees_with_tensorstore(attack):
  database = ocdbt.Database(attack.item)
  value = database.append(bytes(range(24)))
  first = ocdbt.entries({"a.value": small_trees.SIX})
  first[1] = (first[1][0], value)
  at = database.node(ocdbt.leaf(first))
  children = [
    Child(b"a", at.offset, at.length, 2),
    small_trees.two_leaves(database)[1],
  ]
  root = database.node(ocdbt.interior(children))
  database.write(ocdbt.manifest([Root(root.offset, root.length, 4, height=1)]))
  found = stores.read_item(attack.item)
  assert found["a.value"].tobytes() == bytes(range(24))
  assert found["b.value"].tobytes() == bytes(24)
  attack.harmless()


def test_checksum_of_the_standard():
  assert ocdbt.crc32c(b"123456789") == 0xE3069283
