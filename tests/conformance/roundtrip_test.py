"""There and back again is the identity, for every golden checkpoint.

Each is converted to another layout or form and back, and its arrays, trees and
custom metadata are compared with those that its trainer wrote.
"""

import itertools
import json
from pathlib import Path

import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import golden, stores

_PATTERN = {name: "gemma3" for name in golden.ALL if "gemma3" in name}
_NUMBERED_BY_HAND = ("qlora_int8_fullstate_unscan",)
"""Steps whose directory has another number than their updates."""

_MODES = ("keep", "true", "false")
_LAYOUTS = ("maxtext", "tunix")


def _layout(name: str) -> str:
  return "maxtext" if name in golden.MAXTEXT else "tunix"


def _step(root: Path) -> Path:
  """Returns the last step of a run."""
  steps = [path.parent for path in root.rglob("_CHECKPOINT_METADATA")]
  return max(steps, key=lambda path: int(path.name))


def _tree(item: Path) -> dict:
  """Returns the kinds of keys and the type of each leaf, by key path."""
  metadata = json.loads((item / "_METADATA").read_text())
  return {
    path: (
      [(key["key"], key["key_type"]) for key in leaf["key_metadata"]],
      leaf["value_metadata"]["value_type"],
      leaf["value_metadata"]["skip_deserialize"],
    )
    for path, leaf in metadata["tree_metadata"].items()
  }


def _custom_metadata(step: Path) -> dict:
  metadata = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  return metadata["custom_metadata"] or {}


def _items(step: Path) -> list[str]:
  return sorted(
    path.parent.name
    for path in step.glob("*/manifest.ocdbt")
    if path.parent.name != "relayout"
  )


@pytest.mark.parametrize(
  ("name", "layout", "mode"),
  [
    (name, layout, mode)
    for name, layout, mode in itertools.product(golden.ALL, _LAYOUTS, _MODES)
    if (layout, mode) != (_layout(name), "keep")
  ],
)
def test_there_and_back_is_the_identity(name, layout, mode, tmp_path):
  source = _step(golden.checkpoints(name))
  pattern = "" if mode == "keep" else _PATTERN.get(name, "flat")
  there = Options(to=layout, scan_layers=mode, layer_pattern=pattern)
  convert(source, tmp_path / "there", there)
  is_scanned = "unscan" not in name
  back = Options(
    to=_layout(name),
    scan_layers="keep" if mode == "keep" else str(is_scanned).lower(),
    step_numbering="target",
  )
  convert(_step(tmp_path / "there"), tmp_path / "back", back)
  returned = _step(tmp_path / "back")
  assert _items(returned) == _items(source)
  for item in _items(source):
    assert stores.digests(returned / item) == stores.digests(source / item)
    assert _tree(returned / item) == _tree(source / item)
  if name not in _NUMBERED_BY_HAND:
    assert returned.name == source.name
  found, expected = _custom_metadata(returned), _custom_metadata(source)
  assert {key: found.get(key) for key in expected} == expected
