"""The binding: conversions, errors and ownership."""

import gc
import json
import struct
import threading

import numpy as np
import pytest
import zstandard

from relayout import _native, errors
from tests.native import oracle, rekeying


def make_database(directory, values, **config):
  kvstore = oracle.open_kvstore(directory, **config)
  for key, value in values.items():
    kvstore.write(key, value).result()
  return _native.list_database(directory)


METADATA = b'{"shape": [2], "chunks": [1]}'


@pytest.fixture
def listing(tmp_path):
  values = {b"a/.zarray": METADATA, b"a/0": b"x" * 500, b"a/1": b"yy"}
  return make_database(tmp_path / "source", values)


def move_of_a(target="b", **changes):
  arguments = {
    "listing": 0,
    "source_array": "a",
    "target_array": target,
    "source_keys": rekeying.V2,
    "target_keys": rekeying.V2,
    "source_grid": [2],
    "target_index": [("axis", 0)],
  }
  return _native.ArrayMove(**(arguments | changes))


def test_describes_a_database(tmp_path):
  listing = make_database(
    tmp_path / "s",
    {b"k": b"v"},
    max_inline_value_bytes=7,
    max_decoded_node_bytes=5000,
    compression={"id": "zstd", "level": 3},
    uuid="000102030405060708090a0b0c0d0e0f",
  )
  assert listing.directory == str(tmp_path / "s")
  assert listing.uuid == bytes(range(16))
  assert listing.max_inline_value_bytes == 7
  assert listing.max_decoded_node_bytes == 5000
  assert listing.zstd_level == 3
  assert listing.num_keys == 1
  assert listing.generation >= 1
  assert listing.stray_keys(5) == [b"k"]
  assert listing.stray_keys(0) == []


def test_describes_an_uncompressed_database(tmp_path):
  listing = make_database(tmp_path, {b"k": b"v"}, compression=None)
  assert listing.zstd_level is None


def test_describes_files(listing, tmp_path):
  assert listing.files
  for file in listing.files:
    assert (tmp_path / "source" / file.path).stat().st_size == file.num_bytes


def test_reads_ranges(listing):
  assert listing.read(b"a/1") == b"yy"
  assert listing.read(b"a/0", offset=499) == b"x"
  assert listing.read(b"a/0", offset=10, length=3) == b"xxx"
  assert listing.read(b"a/0", offset=500) == b""
  for offset, length in [(501, None), (0, 501), (1, 2**64 - 1)]:
    with pytest.raises(errors.CorruptCheckpointError, match="leaves"):
      listing.read(b"a/0", offset=offset, length=length)
  with pytest.raises(KeyError, match="a/2"):
    listing.read(b"a/2")


def test_keys_that_are_not_utf8(tmp_path):
  listing = make_database(
    tmp_path, {b"\xff/.zarray": b"{}", b"\xff/0": b"", b"\xfe": b"v"}
  )
  assert listing.stray_keys(9) == [b"\xfe"]
  assert listing.read(b"\xfe") == b"v"
  (entry,) = listing.arrays()
  with pytest.raises(errors.CorruptCheckpointError, match=r"\\xff"):
    _ = entry.name
  with pytest.raises(ValueError, match=r"\\xff"):
    _native.plan_rekey([listing], moves=[], literals=[], drops=[])


def test_missing_and_damaged_databases(listing, tmp_path):
  with pytest.raises((errors.CorruptCheckpointError, OSError)):
    _native.list_database(tmp_path / "nowhere")
  manifest = tmp_path / "source" / "manifest.ocdbt"
  manifest.write_bytes(manifest.read_bytes()[:-1])
  with pytest.raises(errors.CorruptCheckpointError, match="manifest"):
    _native.list_database(tmp_path / "source")
  with pytest.raises(TypeError):
    _native.list_database(5)


def test_plan_describes_itself(listing):
  plan = _native.plan_rekey(
    [listing],
    moves=[move_of_a()],
    literals=[("b/.zarray", METADATA), (b"\xffstep", b"4")],
    drops=[],
  )
  assert plan.num_keys == 4
  assert plan.num_indirect_bytes == 500
  assert plan.num_inline_bytes == len(METADATA) + 2 + 1
  assert [(f.listing, f.num_bytes) for f in plan.files] == [
    (
      0,
      next(f.num_bytes for f in listing.files if f.path == plan.files[0].path),
    )
  ]
  metadata, first, second, step = plan.entries(0, 100)
  assert [e.key for e in (metadata, first, second, step)] == [
    b"b/.zarray",
    b"b/0",
    b"b/1",
    b"\xffstep",
  ]
  assert (first.file, first.length, first.inline_value) == (0, 500, None)
  assert (second.file, second.offset) == (None, None)
  assert bytes(second.inline_value) == b"yy"
  assert [e.key for e in plan.entries(1, 2)] == [b"b/0"]
  assert plan.entries(3, 1) == []


def test_inline_values_outlive_everything(tmp_path):
  listing = make_database(tmp_path, {b"a/.zarray": b"{}", b"a/0": b"value"})
  plan = _native.plan_rekey(
    [listing],
    moves=[move_of_a()],
    literals=[("b/.zarray", b"literal")],
    drops=[],
  )
  views = [entry.inline_value for entry in plan.entries(0, 2)]
  del listing, plan
  gc.collect()
  assert all(view.readonly for view in views)
  assert [bytes(view) for view in views] == [b"literal", b"value"]


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"source_array": "x"}, "no such array"),
    ({"listing": 1}, "listing 1"),
    ({"target_index": []}, "axis 0 occurs 0 times"),
    ({"filters": [(0, 2)]}, "filter index 2"),
  ],
)
def test_bad_moves(listing, changes, message):
  with pytest.raises(ValueError, match=message):
    _native.plan_rekey(
      [listing],
      moves=[move_of_a(**changes)],
      literals=[("b/.zarray", b"{}")],
      drops=[(0, "a")] if "source_array" in changes else [],
    )


def test_bad_arguments():
  with pytest.raises(ValueError, match="style"):
    _native.ChunkKeyFormat("v9", ".")
  with pytest.raises(ValueError, match="separator"):
    _native.ChunkKeyFormat("v2", "_")
  with pytest.raises(ValueError, match="term"):
    move_of_a(target_index=[("layer", 0)])
  with pytest.raises(TypeError):
    move_of_a(source_grid=[-1])
  with pytest.raises(TypeError):
    _native.plan_rekey([], moves=[], literals=[(5, b"")], drops=[])


def test_overlapping_targets_name_both_sources(tmp_path):
  values = {b"a/.zarray": b"{}", b"a/0": b"", b"c/.zarray": b"{}", b"c/0": b""}
  listing = make_database(tmp_path, values)
  with pytest.raises(ValueError, match=r'"b/0".*"a/0".*"c/0"'):
    _native.plan_rekey(
      [listing],
      moves=[move_of_a(), move_of_a(source_array="c")],
      literals=[("b/.zarray", b"{}")],
      drops=[],
    )


@pytest.mark.parametrize("key", [b"a/x", b"a/0.0", b"a/2", b"a/00", b"a/\xff"])
def test_bad_chunk_keys(tmp_path, key):
  listing = make_database(tmp_path, {b"a/.zarray": b"{}", key: b""})
  with pytest.raises(errors.CorruptCheckpointError, match="a/"):
    _native.plan_rekey(
      [listing],
      moves=[move_of_a()],
      literals=[("b/.zarray", b"{}")],
      drops=[],
    )


def test_unaccounted_keys(listing, tmp_path):
  with pytest.raises(ValueError, match="neither moved nor dropped"):
    _native.plan_rekey([listing], moves=[], literals=[], drops=[])
  stray = make_database(tmp_path / "stray", {b".zgroup": b"{}"})
  with pytest.raises(ValueError, match="zgroup"):
    _native.plan_rekey([stray], moves=[], literals=[], drops=[])
  plan = _native.plan_rekey(
    [listing, stray], moves=[], literals=[], drops=[(0, "a"), (1, ".zgroup")]
  )
  assert plan.num_keys == 0


def test_apply_errors(listing, tmp_path):
  plan = rekeying.plan_renames(listing, lambda name: name + ".b")
  with pytest.raises(ValueError, match="uuid has 3 bytes"):
    rekeying.link_and_apply(plan, [listing], tmp_path / "t0", uuid=b"123")
  with pytest.raises(ValueError, match="limit of 20 bytes"):
    rekeying.link_and_apply(
      plan, [listing], tmp_path / "t1", max_decoded_node_bytes=20
    )
  rekeying.link_and_apply(plan, [listing], tmp_path / "t2")
  with pytest.raises(OSError, match="exists"):
    _native.apply_rekey(
      plan,
      directory=tmp_path / "t2",
      file_paths=["d0/0"],
      uuid=rekeying.UUID,
      max_inline_value_bytes=100,
      max_decoded_node_bytes=1000,
      zstd_level=None,
      data_file="d/more",
      commit_time_ns=0,
    )


def test_empty_database(tmp_path):
  plan = _native.plan_rekey([], moves=[], literals=[], drops=[])
  report = rekeying.link_and_apply(plan, [], tmp_path / "t")
  assert (report.num_keys, report.num_nodes, report.height) == (0, 0, 0)
  assert oracle.read_all(tmp_path / "t") == {}
  assert oracle.dump_tree(tmp_path / "t").num_nodes == 0
  assert _native.list_database(tmp_path / "t").num_keys == 0


def test_tensorstore_can_write_to_the_result(listing, tmp_path):
  plan = rekeying.plan_renames(listing, lambda name: name)
  rekeying.link_and_apply(plan, [listing], tmp_path / "t")
  before = oracle.read_all(tmp_path / "t")
  kvstore = oracle.open_kvstore(tmp_path / "t")
  kvstore.write(b"more", b"1").result()
  assert oracle.read_all(tmp_path / "t") == before | {b"more": b"1"}
  assert _native.list_database(tmp_path / "t").generation == 2


def test_lists_from_many_threads(listing):
  results = []

  def work():
    again = _native.list_database(listing.directory)
    results.append([entry.num_chunks for entry in again.arrays()])

  threads = [threading.Thread(target=work) for _ in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert results == [[2]] * 8


def test_crc32c_of_any_buffer():
  assert _native.crc32c(b"123456789") == 0xE3069283
  array = np.frombuffer(b"123456789", np.uint8)
  assert _native.crc32c(array) == 0xE3069283
  assert _native.crc32c(memoryview(b"0123456789")[1:]) == 0xE3069283
  assert _native.crc32c(b"") == 0


def test_refuses_buffers_that_are_not_contiguous():
  array = np.arange(20, dtype=np.uint8).reshape(4, 5)
  for view in (array[:, ::2], array.T):
    with pytest.raises(ValueError, match="contiguous"):
      _native.crc32c(view)
  with pytest.raises(TypeError):
    _native.crc32c("text")


def test_a_buffer_is_released():
  data = bytearray(b"123")
  _native.crc32c(data)
  data.append(4)  # Fails while someone holds the buffer.


def test_zstd():
  frame = zstandard.compress(b"abc" * 1000)
  assert _native.zstd_decompress(frame, max_num_bytes=3000) == b"abc" * 1000
  for bad, limit in [(frame, 2999), (frame[:-1], 3000), (b"x", 10)]:
    with pytest.raises(errors.CorruptCheckpointError):
      _native.zstd_decompress(bad, max_num_bytes=limit)


def test_decodes_shard_indexes():
  absent = 2**64 - 1
  index = struct.pack("<4Q", 0, 6, absent, absent)
  checksum = struct.pack("<I", _native.crc32c(index))
  want = [(0, 6), None]
  decode = _native.decode_shard_index
  assert decode(b"chunks" + index, num_chunks=2, checksum=False) == want
  value = b"chunks" + index + checksum
  assert decode(value, num_chunks=2, checksum=True) == want
  assert want == decode(
    index + checksum,
    num_chunks=2,
    checksum=True,
    num_value_bytes=len(value),
  )
  assert want == decode(
    index + b"chunks", num_chunks=2, checksum=False, at_end=False
  )
  with pytest.raises(errors.CorruptCheckpointError, match="CRC"):
    decode(b"chunks" + index + b"\0" * 4, num_chunks=2, checksum=True)
  beyond = struct.pack("<2Q", 30, 11)
  with pytest.raises(errors.CorruptCheckpointError, match="leaves"):
    decode(beyond, num_chunks=1, checksum=False, num_value_bytes=40)


def test_metadata_is_bytes(listing):
  (entry,) = listing.arrays()
  assert json.loads(entry.metadata)["shape"] == [2]
