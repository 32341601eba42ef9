"""Databases that break the rules of OCDBT: refused in words, never a crash."""

import dataclasses
import os
import struct

import pytest
import zstandard

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt.ocdbt_encoder import Child, Ref, Root
from tests.support import stores

_SIX = ocdbt.zarray([2, 3])
_PLAIN = ocdbt.entries({"a.value": _SIX})


def _write(attack, body, num_keys=2, **fields):
  ocdbt.Database(attack.item).write_leaf(body, num_keys, **fields)


def _two_leaves(database):
  """Adds two leaves; returns the children that refer to them."""
  children = []
  for name in ("a", "b"):
    entries = ocdbt.entries({f"{name}.value": _SIX})
    at = database.node(ocdbt.leaf(entries))
    children.append(Child(name.encode(), at.offset, at.length, 2))
  return children


def _write_tree(attack, change=lambda children: children, **fields):
  """Writes a root of height 1, its children changed."""
  database = ocdbt.Database(attack.item)
  children = change(_two_leaves(database))
  at = database.node(ocdbt.interior(children))
  root = Root(at.offset, at.length, 4, height=1)
  database.write(ocdbt.manifest([dataclasses.replace(root, **fields)]))


def test_the_encoder_agrees_with_tensorstore(attack):
  database = ocdbt.Database(attack.item)
  value = database.append(bytes(range(24)))
  first = ocdbt.entries({"a.value": _SIX})
  first[1] = (first[1][0], value)
  at = database.node(ocdbt.leaf(first))
  children = [Child(b"a", at.offset, at.length, 2), _two_leaves(database)[1]]
  root = database.node(ocdbt.interior(children))
  database.write(ocdbt.manifest([Root(root.offset, root.length, 4, height=1)]))
  found = stores.read_item(attack.item)
  assert found["a.value"].tobytes() == bytes(range(24))
  assert found["b.value"].tobytes() == bytes(24)
  attack.harmless()


def test_checksum_of_the_standard():
  assert ocdbt.crc32c(b"123456789") == 0xE3069283


# Data file paths.


@pytest.mark.parametrize(
  "path",
  [
    "../../../secret",
    "d/../../../../secret",
    "/etc/passwd",
    "d//data",
    "./d/data",
    "d/./data",
    "d/data/",
    "",
    b"d/da\0ta",
    b"\xff\xfe",
    "d",
    ".",
    "..",
    "d/" + "x" * 300,
    "a/" * 2000 + "b",
    "d/missing",
  ],
)
def test_paths_that_leave_the_checkpoint_or_lead_nowhere(attack, path):
  (attack.root.parent / "secret").write_bytes(bytes(100))
  entries = [(_PLAIN[0]), (_PLAIN[1][0], Ref(0, 24))]
  _write(attack, ocdbt.leaf(entries, files=[path]))
  (attack.root.parent / "secret").unlink()
  attack.refused("model_params")


@pytest.mark.parametrize("base", [1, 3, 9, 10**6])
def test_base_paths_that_leave_the_checkpoint(attack, base):
  entries = [(_PLAIN[0]), (_PLAIN[1][0], Ref(0, 24))]
  _write(attack, ocdbt.leaf(entries, files=["../secret"], bases=[base]))
  attack.refused("model_params")


def test_a_node_in_a_file_outside(attack):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(_PLAIN))
  (attack.root / "4" / "outside").write_bytes(bytes(1000))
  root = Root(at.offset, at.length, 2)
  database.write(ocdbt.manifest([root], files=["../outside"]))
  attack.refused("../outside")


def test_path_prefixes_longer_than_the_path_before(attack):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(_PLAIN))
  table = ocdbt.varints([2, 9, 6, 1, 0, 0]) + b"d/datax"
  body = ocdbt.config() + table
  body += ocdbt.versions([Root(at.offset, at.length, 2)]) + b"\0"
  database.write(body)
  attack.refused("manifest.ocdbt", "prefix")


@pytest.mark.parametrize("kind", ["file", "directory", "absolute", "circle"])
def test_links_that_leave_the_checkpoint(attack, kind):
  entries = [(_PLAIN[0]), (_PLAIN[1][0], Ref(0, 24))]
  _write(attack, ocdbt.leaf(entries, files=["e/data"]))
  outside = attack.root / "outside"
  outside.mkdir()
  (outside / "data").write_bytes(bytes(100))
  link = attack.item / "e"
  if kind == "directory":
    link.symlink_to("../../outside")
  elif kind == "absolute":
    link.symlink_to(outside.resolve())
  elif kind == "circle":
    link.symlink_to("e")
  else:
    link.mkdir()
    (link / "data").symlink_to("../../../outside/data")
  attack.refused("e/data")


@pytest.mark.parametrize("name", ["manifest.ocdbt", "d"])
def test_the_database_itself_is_a_link_outside(attack, name):
  """Whoever unpacks a checkpoint may find a link in place of any file."""
  _write(attack, ocdbt.leaf(_PLAIN))
  outside = attack.root / "outside"
  (attack.item / name).rename(outside)
  (attack.item / name).symlink_to(f"../../{outside.name}")
  attack.refused("link")


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_a_data_file_that_is_no_file(attack, kind):
  entries = [(_PLAIN[0]), (_PLAIN[1][0], Ref(0, 24))]
  _write(attack, ocdbt.leaf(entries, files=["d/x"]))
  path = attack.item / "d" / "x"
  if kind == "pipe":
    os.mkfifo(path)
  else:
    path.mkdir()
  attack.refused("d/x")


# Ranges.


@pytest.mark.parametrize(
  ("offset", "length"),
  [
    (0, 10**6),
    (10**6, 24),
    (0, 2**63),
    (2**63, 24),
    (2**64 - 1, 24),
    (2**64 - 24, 24),
    (24, 2**64 - 24),
    (2**64 - 1, 2**64 - 1),
  ],
)
def test_values_beyond_their_file(attack, offset, length):
  entries = [(_PLAIN[0]), (_PLAIN[1][0], Ref(offset, length))]
  _write(attack, ocdbt.leaf(entries))
  attack.refused("d/data", "a.value/0.0")


def test_metadata_beyond_its_file(attack):
  entries = [(_PLAIN[0][0], Ref(0, 10**6)), _PLAIN[1]]
  _write(attack, ocdbt.leaf(entries))
  attack.refused("d/data", "a.value/.zarray")


def test_huge_metadata(attack):
  """Array metadata of a gigabyte, in a sparse file."""
  entries = [(_PLAIN[0][0], Ref(0, 1 << 30, file=0)), _PLAIN[1]]
  _write(attack, ocdbt.leaf(entries, files=["d/big"]))
  with (attack.item / "d" / "big").open("wb") as file:
    file.truncate(1 << 30)
  attack.refused("a.value")


@pytest.mark.parametrize(
  "change",
  [
    {"offset": 10**6},
    {"length": 10**6},
    {"length": 2**63},
    {"offset": 2**64 - 1},
    {"length": 2**64 - 1},
    {"length": 0},
    {"length": 17},
    {"offset": 1},
    {"num_keys": 0},
    {"num_keys": 1},
    {"num_keys": 2**40},
    {"num_keys": 2**64 - 1},
    {"height": 1},
    {"height": 255},
    {"generation": 0},
  ],
)
def test_roots_that_lie(attack, change):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(_PLAIN))
  root = dataclasses.replace(Root(at.offset, at.length, 2), **change)
  database.write(ocdbt.manifest([root]))
  attack.refused("model_params")


def test_a_root_in_no_file(attack):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(_PLAIN))
  database.write(ocdbt.manifest([Root(at.offset, at.length, 2, file=7)]))
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize(
  ("offset", "length"), [(ocdbt.MISSING, 5), (5, ocdbt.MISSING)]
)
def test_half_a_missing_root(attack, offset, length):
  database = ocdbt.Database(attack.item)
  database.node(ocdbt.leaf(_PLAIN))
  database.write(ocdbt.manifest([Root(offset, length, 0)]))
  attack.refused("model_params")


def test_an_empty_database(attack):
  database = ocdbt.Database(attack.item)
  root = Root(ocdbt.MISSING, ocdbt.MISSING, 0, tree_bytes=0)
  database.write(ocdbt.manifest([root]))
  attack.refused("model_params")


# The tree.


def _at(**change):
  def apply(children):
    return [children[0], dataclasses.replace(children[1], **change)]

  return apply


def test_a_tree_of_two_leaves_is_fine(attack):
  _write_tree(attack)
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
  _write_tree(attack, change)
  attack.refused("model_params")


@pytest.mark.parametrize("height", [0, 2, 255])
def test_a_root_of_another_height(attack, height):
  _write_tree(attack, height=height)
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
  at = database.node(ocdbt.leaf(_PLAIN))
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
    {"value_lengths": [len(_SIX), 25]},
    {"value_lengths": [len(_SIX) + 1, 24]},
    {"value_lengths": [2**63, 24]},
    {"value_lengths": [2**64 - 1, len(_SIX) + 25]},
    {"kinds": b"\0\1"},
    {"kinds": b"\0\2"},
    {"kinds": b"\0\xff"},
    {"trailing": b"\0"},
  ],
)
def test_leaves_that_lie(attack, fields):
  _write(attack, ocdbt.leaf(_PLAIN, **fields))
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
  _write(attack, ocdbt.leaf(_PLAIN, **fields))
  attack.refused_or_harmless("model_params")


@pytest.mark.parametrize("order", ["reversed", "twice"])
def test_keys_that_do_not_increase(attack, order):
  entries = _PLAIN[::-1] if order == "reversed" else [_PLAIN[0], *_PLAIN]
  _write(attack, ocdbt.leaf(entries), len(entries))
  attack.refused("d/data", "does not follow")


def test_no_keys_at_all(attack):
  _write(attack, ocdbt.leaf([]), 0)
  attack.refused("d/data")


@pytest.mark.parametrize("file", [1, 2**31, 2**63])
def test_a_value_in_no_file(attack, file):
  _write(attack, ocdbt.leaf([_PLAIN[0], (_PLAIN[1][0], Ref(0, 24, file=file))]))
  attack.refused("d/data", "data file")


@pytest.mark.parametrize("count", [2**20, 2**32, 2**40, 2**64 - 1])
def test_many_data_files_that_are_not_there(attack, count):
  body = b"\0" + ocdbt.varint(count) + ocdbt.leaf(_PLAIN)[2:]
  _write(attack, body)
  attack.refused("d/data", "data files")


# Records.


@pytest.mark.parametrize(
  "fields",
  [
    {"compression": 1},
    {"compression": 2},
    {"compression": 2**63},
    {"version": 1},
    {"version": 2**40},
    {"length": 0},
    {"length": 5},
    {"length": 2**63},
    {"length": 2**64 - 1},
    {"checksum": 0},
  ],
)
@pytest.mark.parametrize("where", ["node", "manifest"])
def test_records_that_lie(attack, fields, where):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(_PLAIN), **fields if where == "node" else {})
  body = ocdbt.manifest([Root(at.offset, at.length, 2)])
  database.write(body, **fields if where == "manifest" else {})
  attack.refused("d/data" if where == "node" else "manifest.ocdbt")


def test_a_record_of_another_kind(attack):
  database = ocdbt.Database(attack.item)
  at = database.append(ocdbt.record(ocdbt.VERSION_NODE, ocdbt.leaf(_PLAIN)))
  database.write(ocdbt.manifest([Root(at.offset, at.length, 2)]))
  attack.refused("d/data", "magic")


def _frame(content_size: int, block: bytes) -> bytes:
  """Returns a zstd frame of one raw block that claims `content_size`."""
  header = struct.pack("<IBQ", 0xFD2FB528, 0b11100000, content_size)
  return header + struct.pack("<I", len(block) << 3 | 1)[:3] + block


@pytest.mark.parametrize("size", [2**30, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("where", ["node", "manifest"])
def test_frames_that_claim_to_be_huge(attack, size, where):
  database = ocdbt.Database(attack.item)
  body = ocdbt.leaf(_PLAIN)
  if where == "node":
    at = database.node(_frame(size, body), compression=1)
    database.write(ocdbt.manifest([Root(at.offset, at.length, 2)]))
  else:
    at = database.node(body)
    root = ocdbt.manifest([Root(at.offset, at.length, 2)])
    database.write(_frame(size, root), compression=1)
  attack.refused("d/data" if where == "node" else "manifest.ocdbt")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("where", ["node", "manifest"])
def test_frames_that_expand_to_gigabytes(attack, known, where):
  compressor = zstandard.ZstdCompressor(write_content_size=known)
  total, part = 3 << 30, bytes(16 << 20)
  stream = compressor.compressobj(size=total if known else -1)
  frame = b"".join(stream.compress(part) for _ in range(total // len(part)))
  frame += stream.flush()
  assert len(frame) < 1 << 20
  database = ocdbt.Database(attack.item)
  if where == "node":
    at = database.node(frame, compression=1)
    database.write(ocdbt.manifest([Root(at.offset, at.length, 2)]))
  else:
    database.write(frame, compression=1)
  attack.refused("d/data" if where == "node" else "manifest.ocdbt", "zstd")


def _entries_of_nothing(count: int) -> bytes:
  """Returns the body of a leaf of empty values, most of it zeros."""
  return b"".join(
    (
      b"\0\0",
      ocdbt.varint(count),
      bytes(count - 1),
      b"\1" * count,
      b"a" * count,
      bytes(2 * count),
    )
  )


def test_a_node_that_expands_to_many_entries(attack):
  """What a compressed node makes us allocate is bounded."""
  frame = zstandard.compress(_entries_of_nothing(20 << 20))
  assert len(frame) < 100_000
  _write(attack, frame, 20 << 20, compression=1)
  attack.refused("d/data")


@pytest.mark.parametrize("cut", [1, 4, 10])
def test_a_frame_cut_short(attack, cut):
  frame = zstandard.compress(ocdbt.leaf(_PLAIN))
  _write(attack, frame[:-cut], compression=1)
  attack.refused("d/data", "zstd")


def test_bytes_after_a_frame(attack):
  frame = zstandard.compress(ocdbt.leaf(_PLAIN))
  _write(attack, frame + b"more", compression=1)
  attack.refused("d/data", "zstd")


# Manifests.


def _plain_root(database):
  at = database.node(ocdbt.leaf(_PLAIN))
  return Root(at.offset, at.length, 2)


@pytest.mark.parametrize(
  "fields",
  [
    {"kind": 2},
    {"kind": 127},
    {"kind": 2**63},
    {"arity": 0},
    {"arity": 17},
    {"arity": 64},
    {"arity": 255},
    {"max_node": 2**40},
    {"max_inline": 2**63},
    {"compression": b"\2"},
    {"compression": b"\1\xff\xff\xff\x7f"},
    {"compression": b"\1\0\0\0\x80"},
    {"uuid": b"short"},
  ],
)
def test_configurations_that_lie(attack, fields):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  database.write(ocdbt.manifest([root], header=ocdbt.config(**fields)))
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize(
  "fields", [{"max_node": 0}, {"max_node": 1}, {"max_inline": 0}]
)
def test_limits_that_no_node_can_obey(attack, fields):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  database.write(ocdbt.manifest([root], header=ocdbt.config(**fields)))
  attack.refused_or_harmless("model_params")


@pytest.mark.parametrize(
  "generations", [(), (0,), (1, 1), (2, 1), (1, 17), (16, 17), range(1, 18)]
)
def test_generations_that_lie(attack, generations):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  roots = [dataclasses.replace(root, generation=g) for g in generations]
  database.write(ocdbt.manifest(roots))
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize("count", [2**16, 2**40, 2**64 - 1])
@pytest.mark.parametrize("what", ["versions", "nodes"])
def test_counts_of_versions_that_lie(attack, count, what):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  body = ocdbt.config() + ocdbt.file_table([ocdbt.DATA])
  if what == "versions":
    body += ocdbt.versions([root], count=count) + ocdbt.version_nodes([])
  else:
    body += ocdbt.versions([root]) + ocdbt.version_nodes([], count=count)
  database.write(body)
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize(
  "change",
  [
    {"height": 0},
    {"height": 16},
    {"height": 255},
    {"generation": 0},
    {"generation": 17},
    {"generation": 2**63},
    {"file": 3},
  ],
)
def test_version_nodes_that_lie(attack, change):
  database = ocdbt.Database(attack.item)
  root = dataclasses.replace(_plain_root(database), generation=17)
  node = ocdbt.VersionNode(16, 0, 50, height=1, num_generations=16)
  node = dataclasses.replace(node, **change)
  database.write(ocdbt.manifest([root], nodes=[node]))
  attack.refused("manifest.ocdbt")


def test_older_versions_are_not_read(attack):
  """Whatever the version tree holds, the newest version stands apart."""
  database = ocdbt.Database(attack.item)
  root = dataclasses.replace(_plain_root(database), generation=17)
  node = ocdbt.VersionNode(16, 2**40, 2**40, height=1, num_generations=16)
  database.write(ocdbt.manifest([root], nodes=[node]))
  attack.refused_or_harmless("model_params")


def _numbered(attack, name, header=None, generation=1):
  """Writes a manifest of the numbered kind and the one it stands for."""
  database = ocdbt.Database(attack.item)
  root = dataclasses.replace(_plain_root(database), generation=generation)
  database.write(ocdbt.manifest([root], header=header))
  (attack.item / "manifest.ocdbt").rename(attack.item / name)
  top = ocdbt.record(ocdbt.MANIFEST, ocdbt.config(kind=1))
  (attack.item / "manifest.ocdbt").write_bytes(top)


def test_a_numbered_manifest_is_fine(attack):
  _numbered(attack, "manifest.0000000000000001")
  attack.harmless()


@pytest.mark.parametrize(
  "fields",
  [
    {"header": ocdbt.config(uuid=b"v" * 16)},
    {"header": ocdbt.config(max_inline=5)},
    {"header": ocdbt.config(kind=1)},
    {"generation": 2},
  ],
)
def test_numbered_manifests_that_lie(attack, fields):
  name = "manifest.0000000000000001"
  _numbered(attack, name, **fields)
  attack.refused(name)


def test_a_numbered_manifest_that_is_missing(attack):
  _numbered(attack, "elsewhere")
  attack.refused("model_params")


def test_a_numbered_manifest_that_stands_for_itself(attack):
  name = "manifest.0000000000000001"
  _numbered(attack, name)
  (attack.item / name).unlink()
  (attack.item / name).symlink_to("manifest.ocdbt")
  attack.refused(name)


def test_an_endless_numbered_manifest(attack):
  name = "manifest.ffffffffffffffff"
  _numbered(attack, "elsewhere")
  with (attack.item / name).open("wb") as file:
    file.truncate(1 << 40)
  attack.refused(name)
