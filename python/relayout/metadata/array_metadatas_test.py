import dataclasses

import pytest

from relayout.errors import CorruptCheckpointError
from relayout.metadata import array_metadatas
from relayout.metadata.array_metadatas import ArrayMetadata
from tests.support import golden

_KERNEL = ArrayMetadata("a.kernel", (4, 2), (2, 2))
_KEY = ArrayMetadata(
  "a.key", (2,), (2,), "threefry2x32", {"random_key_impl": "threefry2x32"}
)


def _write(item, process, entries):
  directory = item / array_metadatas.DIRECTORY_NAME
  directory.mkdir(exist_ok=True)
  data = array_metadatas.array_metadatas_bytes(entries)
  (directory / f"process_{process}").write_bytes(data)


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_golden_files_come_back_to_the_byte(name):
  paths = list(golden.checkpoints(name).rglob("array_metadatas/process_*"))
  assert paths
  for path in paths:
    data = path.read_bytes()
    parsed = array_metadatas.parse_array_metadatas(data, str(path))
    assert array_metadatas.array_metadatas_bytes(parsed) == data


def test_golden_key_kinds():
  item = golden.checkpoints("pretrain_scan") / "4" / "items"
  entries = array_metadatas.read_array_metadatas(item)
  kinds = {entry.random_key_impl for entry in entries.values()}
  assert kinds == {None, "unsafe_rbg"}


def test_no_files_are_none(tmp_path):
  assert array_metadatas.read_array_metadatas(tmp_path) is None
  (tmp_path / array_metadatas.DIRECTORY_NAME).mkdir()
  assert array_metadatas.read_array_metadatas(tmp_path) is None


def test_hosts_are_merged(tmp_path):
  _write(tmp_path, 0, [_KERNEL])
  _write(tmp_path, 11, [_KERNEL, _KEY])
  entries = array_metadatas.read_array_metadatas(tmp_path)
  assert entries == {"a.kernel": _KERNEL, "a.key": _KEY}


def test_hosts_that_contradict_are_refused(tmp_path):
  _write(tmp_path, 0, [_KERNEL])
  _write(tmp_path, 1, [dataclasses.replace(_KERNEL, chunk_shape=(4, 2))])
  with pytest.raises(CorruptCheckpointError) as caught:
    array_metadatas.read_array_metadatas(tmp_path)
  message = str(caught.value)
  assert "process_1" in message
  assert "'a.kernel'" in message
  assert "[4, 2]" in message
  assert "[2, 2]" in message


def test_key_impl_is_written_without_ext_metadata():
  entry = ArrayMetadata("k", (4,), (4,), random_key_impl="rbg")
  data = array_metadatas.array_metadatas_bytes([entry])
  (parsed,) = array_metadatas.parse_array_metadatas(data, "f")
  assert parsed.random_key_impl == "rbg"


def test_damaged_entry_is_named():
  data = b'{"array_metadatas": [{"array_metadata": {"param_name": "a"}}]}'
  with pytest.raises(CorruptCheckpointError, match="write_shape") as caught:
    array_metadatas.parse_array_metadatas(data, "process_0")
  assert "process_0: array_metadatas: 0: array_metadata" in str(caught.value)
