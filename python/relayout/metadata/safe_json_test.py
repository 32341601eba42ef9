import math

import pytest

from relayout.errors import CorruptCheckpointError
from relayout.metadata import safe_json


def test_reads_what_python_writes():
  value = safe_json.loads('{"a": [1, 2.5, NaN, "\\u00e9\u00e9"]}'.encode(), "f")
  assert value["a"][:2] == [1, 2.5]
  assert math.isnan(value["a"][2])
  assert value["a"][3] == "éé"


@pytest.mark.parametrize(
  ("data", "message"),
  [
    (b"", "not valid JSON"),
    (b'{"a": 1', "not valid JSON"),
    (b'{"a": 1} x', "not valid JSON"),
    (b'{"a": 1, "b": 2, "a": 3}', "key 'a' occurs twice"),
    (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
    (b'{"a": "\\ud800"}', "half a surrogate"),
    (b"[" * 200 + b"]" * 200, "nested more than 100"),
    (b"[" * 1_000_000, "nested more than 100"),
    (b'{"a":' * 100_000, "nested more than 100"),
    (b"1" * 10_000, "not valid JSON"),
  ],
)
def test_refuses_what_is_damaged(data, message):
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    safe_json.loads(data, "/run/4/items/_METADATA")
  assert str(caught.value).startswith("/run/4/items/_METADATA: ")
  assert len(str(caught.value)) < 500


def test_whole_surrogate_pairs_pass():
  assert safe_json.loads(b'"\\ud83d\\ude00"', "f") == "\U0001f600"


def test_read_limits_size(tmp_path):
  path = tmp_path / "_METADATA"
  path.write_text('"' + "x" * 100 + '"')
  assert safe_json.read(path, max_num_bytes=102) == "x" * 100
  with pytest.raises(CorruptCheckpointError, match="longer than 101 bytes"):
    safe_json.read(path, max_num_bytes=101)


def test_read_takes_only_files(tmp_path):
  with pytest.raises(FileNotFoundError):
    safe_json.read(tmp_path / "absent")
  with pytest.raises(CorruptCheckpointError, match="not a regular file"):
    safe_json.read(tmp_path)
  (tmp_path / "loop").symlink_to(tmp_path / "loop")
  with pytest.raises(CorruptCheckpointError, match="loop"):
    safe_json.read(tmp_path / "loop")
