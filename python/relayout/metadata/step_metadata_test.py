import json

import pytest

from relayout.errors import CorruptCheckpointError
from relayout.metadata import step_metadata
from relayout.metadata.step_metadata import StepMetadata
from tests.support import golden


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_golden_files_come_back_to_the_byte(name):
  paths = list(golden.checkpoints(name).rglob(step_metadata.FILE_NAME))
  assert paths
  for path in paths:
    data = path.read_bytes()
    parsed = step_metadata.parse_step_metadata(data, str(path))
    assert step_metadata.step_metadata_bytes(parsed) == data


def test_golden_values():
  step = golden.checkpoints("pretrain_scan") / "4"
  metadata = step_metadata.read_step_metadata(step)
  assert metadata.item_handlers == {"items": step_metadata.PYTREE_HANDLER}
  assert metadata.custom_metadata == {"scan_layers": True}
  assert metadata.init_timestamp_nsecs < metadata.commit_timestamp_nsecs


def test_absent_file_is_none(tmp_path):
  assert step_metadata.read_step_metadata(tmp_path) is None


def test_absent_and_null_fields_pass():
  parsed = step_metadata.parse_step_metadata(b'{"metrics": null}', "f")
  assert parsed == StepMetadata()


def test_unknown_fields_are_kept():
  data = b'{"item_handlers": "h", "later": [1]}'
  parsed = step_metadata.parse_step_metadata(data, "f")
  assert parsed.item_handlers == "h"
  written = json.loads(step_metadata.step_metadata_bytes(parsed))
  assert written["later"] == [1]


@pytest.mark.parametrize(
  ("field", "value", "expected"),
  [
    ("item_handlers", 3, "expected an object"),
    ("custom_metadata", [], "expected an object"),
    ("init_timestamp_nsecs", "now", "expected an integer"),
    ("commit_timestamp_nsecs", 1 << 80, "expected an integer"),
    ("commit_timestamp_nsecs", True, "expected an integer"),
  ],
)
def test_wrong_types_are_named(field, value, expected, tmp_path):
  (tmp_path / step_metadata.FILE_NAME).write_text(json.dumps({field: value}))
  with pytest.raises(CorruptCheckpointError, match=expected) as caught:
    step_metadata.read_step_metadata(tmp_path)
  assert f"{tmp_path / step_metadata.FILE_NAME}: {field}" in str(caught.value)
