"""Sizes of the nodes that are written, measured without our code."""

import os
import struct

import pytest
import tensorstore as ts
import zstandard

from relayout import _native
from tests.native import oracle, rekeying

_ARRAYS = 50
_CHUNKS = 100
_MAGIC = 0x0CDB20DE
_HEADER = struct.Struct(">I")
_LENGTH = struct.Struct("<Q")
_NUM_FRAME_BYTES = 4 + 8 + 1 + 1 + 4  # magic to compression, and the checksum


def _values():
  """Returns thousands of keys; some values are inline, others are not."""
  values = {}
  for array in range(_ARRAYS):
    values[f"array_{array}/.zarray"] = b"{}"
    for chunk in range(_CHUNKS):
      value = b"x" * ((array + chunk) % 120)
      values[f"array_{array}/{chunk}.0"] = value
  return values


@pytest.fixture(scope="module")
def source(tmp_path_factory):
  directory = tmp_path_factory.mktemp("source")
  with ts.Transaction() as transaction:
    store = oracle.open_kvstore(directory).with_transaction(transaction)
    for key, value in _values().items():
      store[key] = value
  return _native.list_database(directory)


def _target(array):
  return f"params.params.decoder.array_{array}"


@pytest.fixture(scope="module")
def plan(source):
  moves = [
    _native.ArrayMove(
      0,
      f"array_{array}",
      _target(array),
      rekeying.V2,
      rekeying.V2,
      [_CHUNKS, 1],
      [("axis", 0), ("axis", 1)],
    )
    for array in range(_ARRAYS)
  ]
  literals = [(f"{_target(array)}/.zarray", b"{}") for array in range(_ARRAYS)]
  return _native.plan_rekey([source], moves=moves, literals=literals, drops=[])


def _body(record):
  """Returns the uncompressed body of a node's record."""
  assert _HEADER.unpack_from(record) == (_MAGIC,)
  assert _LENGTH.unpack_from(record, 4) == (len(record),)
  version, compression = record[12:14]
  assert version == 0
  body = record[14:-4]
  assert len(body) == len(record) - _NUM_FRAME_BYTES
  if compression == 0:
    return body
  assert compression == 1
  reader = zstandard.ZstdDecompressor().decompressobj()
  return reader.decompress(body) + reader.flush()


def _nodes(directory):
  """Yields the body and TensorStore's account of every node, root first."""
  base = ts.KvStore.open(f"file://{directory}/").result()
  root = ts.ocdbt.dump(base).result()["versions"][-1]["root"]
  places = [root["location"]]
  while places:
    place = places.pop()
    node = ts.ocdbt.dump(base, place).result()
    _, prefix, name, offset, length = place.split(":")
    data = (directory / prefix / name).read_bytes()
    yield _body(data[int(offset) :][: int(length)]), node
    if node["height"]:
      places += [entry["location"] for entry in node["entries"]]


@pytest.mark.parametrize("zstd_level", [None, 0, 9])
@pytest.mark.parametrize("limit", [300, 1000, 4096, 65536, 1 << 22])
def test_no_node_exceeds_the_limit(plan, source, tmp_path, limit, zstd_level):
  report = rekeying.link_and_apply(
    plan,
    [source],
    tmp_path / "t",
    max_decoded_node_bytes=limit,
    zstd_level=zstd_level,
  )
  nodes = list(_nodes(tmp_path / "t"))
  assert len(nodes) == report.num_nodes
  assert nodes[0][1]["height"] == report.height
  assert (report.height == 0) is (limit == 1 << 22)
  sizes = [len(body) for body, _ in nodes]
  assert max(sizes) <= limit
  leaves = [len(body) for body, node in nodes if node["height"] == 0]
  assert sum(len(n["entries"]) for _, n in nodes if n["height"] == 0) == (
    plan.num_keys
  )
  # Nor are they far smaller, the last one of a level apart.
  if len(leaves) > 1:
    assert sum(leaves) > 0.7 * limit * (len(leaves) - 1)
  listing = _native.list_database(tmp_path / "t")
  assert listing.max_decoded_node_bytes == limit
  values = {
    key.replace("array_", _target("")).encode(): value
    for key, value in _values().items()
  }
  assert oracle.read_all(tmp_path / "t") == values


def test_a_limit_that_no_node_can_keep(plan, source, tmp_path):
  with pytest.raises(ValueError, match="limit of 60 bytes"):
    rekeying.link_and_apply(
      plan, [source], tmp_path / "t", max_decoded_node_bytes=60
    )
  names = [name for _, _, files in os.walk(tmp_path / "t") for name in files]
  assert "manifest.ocdbt" not in names
