"""What is set aside is read back as it was written, or refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from relayout.convert import aside
from relayout.convert.aside import Origin
from relayout.errors import CorruptCheckpointError
from relayout.layouts.layout import Place
from relayout.metadata.item import open_item
from relayout.tree.key_path import KeyKind, TypedPath
from tests.support import stores

_ORIGIN = Origin(
  layout="tunix",
  mode="unscanned",
  scan_axis=2,
  adapter="base",
  wrappers=("MultiSteps", "chain"),
  has_schedule=False,
  updates=7,
  custom_metadata={"role": "actor", "nested": {"list": [1, None]}},
)
_PATH = TypedPath(
  ("opt_state", "1", "count"), (KeyKind.DICT, KeyKind.SEQUENCE, KeyKind.DICT)
)
_PLACE = Place("optimizer_state", _PATH)


def _write(directory: Path, custom_metadata) -> None:
  """Writes the item, with one leaf set aside from `_ORIGIN`."""
  path = aside.aside_path(_ORIGIN, _PLACE)
  stores.write_item(directory, {".".join(path.names): np.int32(5)})
  keys = [
    {"key": name, "key_type": int(kind)}
    for name, kind in zip(path.names, path.kinds, strict=True)
  ]
  leaf = {
    "key_metadata": keys,
    "value_metadata": {"value_type": "jax.Array", "skip_deserialize": False},
  }
  metadata = {
    "tree_metadata": {str(path.names): leaf},
    "use_ocdbt": True,
    "use_zarr3": False,
    "store_array_data_equal_to_fill_value": True,
    "custom_metadata": custom_metadata,
  }
  (directory / "_METADATA").write_text(json.dumps(metadata))


def _record():
  return json.loads(json.dumps(aside.record([_ORIGIN])))


def test_what_was_written_is_read(tmp_path):
  _write(tmp_path / "relayout", _record())
  found = aside.read_aside(open_item(tmp_path / "relayout"))
  assert found.origins == {"tunix_unscanned": _ORIGIN}
  [(place, stored)] = found.leaves["tunix_unscanned"].items()
  assert place == _PLACE
  assert stored.read_int() == 5


def test_leaves_of_no_known_origin_are_left_out(tmp_path):
  other = Origin(**{**_ORIGIN.to_json(), "layout": "maxtext"})
  _write(tmp_path / "relayout", json.loads(json.dumps(aside.record([other]))))
  found = aside.read_aside(open_item(tmp_path / "relayout"))
  assert found.leaves == {"maxtext_unscanned": {}}


@pytest.mark.parametrize(
  "custom_metadata", [None, {}, {"set_aside": None}, {"set_aside": [1]}]
)
def test_an_item_without_a_record_is_none_of_ours(tmp_path, custom_metadata):
  _write(tmp_path / "relayout", custom_metadata)
  with pytest.raises(CorruptCheckpointError, match="no record `set_aside`"):
    aside.read_aside(open_item(tmp_path / "relayout"))


@pytest.mark.parametrize(
  ("field", "value"),
  [
    ("layout", "pytorch"),
    ("layout", "unknown"),
    ("layout", 1),
    ("mode", "half"),
    ("mode", None),
    ("scan_axis", 3),
    ("scan_axis", -1),
    ("scan_axis", True),
    ("scan_axis", "1"),
    ("scan_axis", 1.0),
    ("adapter", None),
    ("wrappers", "clip"),
    ("wrappers", [1]),
    ("has_schedule", 1),
    ("has_schedule", None),
    ("updates", -1),
    ("updates", 1 << 63),
    ("updates", 1.5),
    ("custom_metadata", None),
    ("custom_metadata", []),
  ],
)
def test_a_hostile_record_is_refused(tmp_path, field, value):
  record = _record()
  record["set_aside"]["tunix_unscanned"][field] = value
  _write(tmp_path / "relayout", record)
  with pytest.raises(CorruptCheckpointError, match=f"tunix_unscanned.*{field}"):
    aside.read_aside(open_item(tmp_path / "relayout"))


@pytest.mark.parametrize("field", _ORIGIN.to_json())
def test_a_record_that_lacks_a_field_is_refused(tmp_path, field):
  record = _record()
  del record["set_aside"]["tunix_unscanned"][field]
  _write(tmp_path / "relayout", record)
  with pytest.raises(CorruptCheckpointError, match=field):
    aside.read_aside(open_item(tmp_path / "relayout"))


@pytest.mark.parametrize("value", [None, 1, "x", []])
def test_an_origin_that_is_no_object_is_refused(tmp_path, value):
  _write(tmp_path / "relayout", {"set_aside": {"tunix_unscanned": value}})
  with pytest.raises(CorruptCheckpointError, match="an object"):
    aside.read_aside(open_item(tmp_path / "relayout"))
