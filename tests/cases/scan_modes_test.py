"""Section B of the cases: scanned and unscanned layers."""

import json
from pathlib import Path

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import LayoutError, OptionError
from tests.support import stores, value_coded

_FLAT = value_coded.MODELS["flat"]


def _write(step: Path, form, custom_metadata=None) -> Path:
  """Writes a step of the flat model, with what its trainer recorded."""
  weights = _FLAT.unscanned() if form is None else _FLAT.scanned(form)
  [arrays] = value_coded.maxtext(weights, None).values()
  stores.write_item(step / "items", arrays)
  if custom_metadata is not None:
    content = {
      "item_handlers": {"items": ""},
      "custom_metadata": custom_metadata,
    }
    (step / "_CHECKPOINT_METADATA").write_text(json.dumps(content))
  return step


def _recorded(step: Path):
  content = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  return content["custom_metadata"]


@pytest.mark.parametrize("asked", ["keep", "true", "false"])
@pytest.mark.parametrize("recorded", [True, False, None])
@pytest.mark.parametrize("form", [None, 1])
def test_b1_b2_b3_names_tell_the_mode_and_the_target_records_it(
  form, recorded, asked, tmp_path
):
  """Absent or wrong metadata changes nothing: the leaves are what they are."""
  custom = None if recorded is None else {"scan_layers": recorded}
  source = _write(tmp_path / "in/4", form, custom)
  pattern = "" if asked == "keep" else "flat"
  options = Options(scan_layers=asked, layer_pattern=pattern)
  [step] = convert(source, tmp_path / "out", options).to_json()["steps"]
  target = Path(step["target"])
  is_scanned = form is not None if asked == "keep" else asked == "true"
  assert _recorded(target)["scan_layers"] is is_scanned
  wanted = _FLAT.scanned(1) if is_scanned else _FLAT.unscanned()
  [expected] = value_coded.maxtext(wanted, None).values()
  found = stores.read_item(target / "items")
  assert found.keys() == expected.keys()
  for name, values in expected.items():
    np.testing.assert_array_equal(found[name], values)


def test_b2_what_was_recorded_needs_no_option_on_the_way_back(tmp_path):
  source = _write(tmp_path / "in/4", None)
  there = Options(scan_layers="true", layer_pattern="flat", scan_axis=2)
  [step] = convert(source, tmp_path / "there", there).to_json()["steps"]
  assert _recorded(Path(step["target"])) == {
    "scan_layers": True,
    "param_scan_axis": 2,
    "layer_pattern": "flat",
  }
  back = Options(scan_layers="false")
  [step] = convert(Path(step["target"]), tmp_path / "back", back).to_json()[
    "steps"
  ]
  assert stores.digests(Path(step["target"], "items")) == stores.digests(
    source / "items"
  )


def test_b1_an_axis_against_the_recorded_one_is_refused(tmp_path):
  source = _write(tmp_path / "in/4", 0, {"param_scan_axis": 0})
  options = Options(
    scan_layers="false", layer_pattern="flat", source_scan_axis=1
  )
  with pytest.raises(OptionError, match="records param_scan_axis 0"):
    convert(source, tmp_path / "out", options)


def test_b6_a_wrong_axis_is_noticed_where_leaves_disagree(tmp_path):
  source = _write(tmp_path / "in/4", 0)
  options = Options(scan_layers="false", layer_pattern="flat")
  with pytest.raises(LayoutError, match="param_scan_axis"):
    convert(source, tmp_path / "out", options)


def test_b4_a_flat_pattern_for_a_model_of_blocks_is_refused(tmp_path):
  model = value_coded.MODELS["gemma3"]
  [arrays] = value_coded.maxtext(model.scanned(1), None).values()
  stores.write_item(tmp_path / "in/4/items", arrays)
  options = Options(scan_layers="false", layer_pattern="flat")
  with pytest.raises(LayoutError, match="--model_name"):
    convert(tmp_path / "in", tmp_path / "out", options)


def test_b9_chunks_like_layers_make_the_next_unstacking_free(tmp_path):
  source = _write(tmp_path / "in/4", 1)
  [step] = convert(
    source,
    tmp_path / "chunked",
    Options(chunk_like="layer", layer_pattern="flat"),
  ).to_json()["steps"]
  assert step["applied"]["num_bytes_rewritten"] > 0
  chunked = Path(step["target"])
  assert stores.digests(chunked / "items") == stores.digests(source / "items")
  for leaf in step["leaves"]:
    if ".layers." in leaf["name"]:
      assert leaf["chunk_shape"][1] == 1
  [step] = convert(
    chunked, tmp_path / "out", Options(scan_layers="false")
  ).to_json()["steps"]
  assert step["applied"]["num_bytes_rewritten"] == 0
  [expected] = value_coded.maxtext(_FLAT.unscanned(), None).values()
  found = stores.read_item(Path(step["target"], "items"))
  assert found.keys() == expected.keys()
  for name, values in expected.items():
    np.testing.assert_array_equal(found[name], values)
