import json

import pytest

from relayout.errors import CorruptCheckpointError
from relayout.metadata import sharding
from tests.support import golden


def _named(*spec):
  return json.dumps({"sharding_type": "NamedSharding", "partition_spec": spec})


def _spec(text):
  return json.loads(text)["partition_spec"]


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_golden_files_come_back(name):
  paths = list(golden.checkpoints(name).rglob(sharding.FILE_NAME))
  assert paths
  for path in paths:
    data = path.read_bytes()
    written = sharding.shardings_bytes(
      sharding.parse_shardings(data, str(path))
    )
    assert json.loads(written) == json.loads(data)
    assert len(written) == len(data)


def test_names_may_hold_any_text():
  texts = dict.fromkeys(("a.\U0001f600", "", "ab~?"), _named())
  data = sharding.shardings_bytes(texts)
  assert sharding.parse_shardings(data, "f") == texts


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("{", "not valid JSON"),
    ("[]", "an object"),
    ('{"sharding_type": "NamedShardinf"}', "NamedShardinf"),
    (
      '{"sharding_type": "NamedSharding", "partition_spec": 1}',
      "partition_spec",
    ),
  ],
)
def test_a_damaged_text_names_the_array(text, message):
  data = sharding.shardings_bytes({"a.b": text})
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    sharding.parse_shardings(data, "items/_sharding")
  assert str(caught.value).startswith("items/_sharding: a.b")


def test_absent_file_is_none(tmp_path):
  assert sharding.read_shardings(tmp_path) is None


@pytest.mark.parametrize(
  ("data", "message"),
  [
    (b"[]", "expected an object"),
    (b'{"a": "{}"}', "base64"),
    (b'{"\xc3\xa9===": "{}"}', "base64"),
    (b'{"_w==": "{}"}', "base64"),
    (b'{"YQ==": 3}', "expected a string"),
  ],
)
def test_damaged_files_are_refused(data, message):
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    sharding.parse_shardings(data, "items/_sharding")
  assert str(caught.value).startswith("items/_sharding: ")


@pytest.mark.parametrize(
  ("spec", "axis", "rank", "expected"),
  [
    (("fsdp", "tensor"), 0, 2, [None, "fsdp", "tensor"]),
    (("fsdp", "tensor"), 1, 2, ["fsdp", None, "tensor"]),
    (("fsdp", "tensor"), 2, 2, ["fsdp", "tensor"]),
    ((["fsdp", "data"], "tensor"), 1, 2, [["fsdp", "data"], None, "tensor"]),
    (("fsdp",), 1, 3, ["fsdp"]),
    (("fsdp",), 0, 3, [None, "fsdp"]),
    ((), 1, 2, []),
    ((), 0, 0, []),
    ((None, None), 1, 2, [None, None]),
  ],
)
def test_stacked_axis_is_not_split(spec, axis, rank, expected):
  text = sharding.stacked_sharding(_named(*spec), axis, rank)
  assert _spec(text) == expected
  assert json.loads(text)["sharding_type"] == "NamedSharding"


@pytest.mark.parametrize(
  ("spec", "axis", "expected"),
  [
    (["fsdp", None, "tensor"], 1, ["fsdp", "tensor"]),
    (["fsdp", "stage"], 1, ["fsdp"]),
    (["fsdp"], 1, ["fsdp"]),
    ([], 0, []),
  ],
)
def test_unstacked_axis_is_dropped(spec, axis, expected):
  text = sharding.unstacked_sharding(_named(*spec), axis)
  assert _spec(text) == expected


def test_single_device_has_no_axes():
  text = '{"sharding_type": "SingleDeviceSharding", "device_str": "cpu:0"}'
  assert sharding.stacked_sharding(text, 0, 2) == text
  assert sharding.unstacked_sharding(text, 0) == text


def test_spec_longer_than_the_rank_is_refused():
  with pytest.raises(CorruptCheckpointError, match="rank 1"):
    sharding.stacked_sharding(_named("fsdp", "tensor"), 0, 1)


@pytest.mark.parametrize("text", ["", "3", '{"partition_spec": 3}', "[" * 9999])
def test_damaged_text_is_refused(text):
  with pytest.raises(CorruptCheckpointError):
    sharding.stacked_sharding(text, 0, 0)


def test_made_up_sharding_is_one_device():
  value = json.loads(sharding.single_device_sharding())
  assert value["device_mesh"] == {"mesh": [{"id": 0}]}
  assert value["partition_spec"] == []
