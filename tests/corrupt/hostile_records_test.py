"""Records of a database that lie of their length or content: refused."""

import struct

import pytest
import zstandard

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt import small_trees
from tests.corrupt.ocdbt_encoder import Root


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
  at = database.node(
    ocdbt.leaf(small_trees.PLAIN), **fields if where == "node" else {}
  )
  body = ocdbt.manifest([Root(at.offset, at.length, 2)])
  database.write(body, **fields if where == "manifest" else {})
  attack.refused("d/data" if where == "node" else "manifest.ocdbt")


def test_a_record_of_another_kind(attack):
  database = ocdbt.Database(attack.item)
  at = database.append(
    ocdbt.record(ocdbt.VERSION_NODE, ocdbt.leaf(small_trees.PLAIN))
  )
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
  body = ocdbt.leaf(small_trees.PLAIN)
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
  small_trees.write(attack, frame, 20 << 20, compression=1)
  attack.refused("d/data")


@pytest.mark.parametrize("cut", [1, 4, 10])
def test_a_frame_cut_short(attack, cut):
  frame = zstandard.compress(ocdbt.leaf(small_trees.PLAIN))
  small_trees.write(attack, frame[:-cut], compression=1)
  attack.refused("d/data", "zstd")


def test_bytes_after_a_frame(attack):
  frame = zstandard.compress(ocdbt.leaf(small_trees.PLAIN))
  small_trees.write(attack, frame + b"more", compression=1)
  attack.refused("d/data", "zstd")
