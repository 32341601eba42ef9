"""Sections D, E and F of the cases, where no other test is about them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import LayoutError
from tests.support import stores

_LAYER = "params.params.decoder.layers_{}.w"
_STACK = "params.params.decoder.layers.w"


def _write(root: Path, num_layers: int) -> Path:
  arrays = {
    _LAYER.format(i): np.full((2, 3), i, np.float32) for i in range(num_layers)
  }
  stores.write_item(root / "4/items", arrays)
  return root


@pytest.mark.parametrize(("layers", "others"), [(2, 3), (3, 2)])
def test_d1_fewer_or_more_layers_than_the_reference_are_refused(
  layers, others, tmp_path
):
  source = _write(tmp_path / "in", layers)
  options = Options(to="", like=_write(tmp_path / "like", others))
  with pytest.raises(LayoutError, match=r"layers_2\.w"):
    convert(source, tmp_path / "out", options)
  assert not (tmp_path / "out").exists()


def test_e7_new_names_cost_as_much_as_the_names(tmp_path):
  """64 MiB under other names: less than a megabyte is written."""
  values = np.random.default_rng(1).standard_normal((64, 1 << 17))
  stores.write_item(tmp_path / "in/4/model_params", {"decoder.w.value": values})
  [step] = convert(tmp_path / "in", tmp_path / "out", Options()).to_json()[
    "steps"
  ]
  assert step["applied"]["num_bytes_linked"] >= 60 << 20
  assert step["applied"]["num_bytes_written"] < 1 << 20
  names = stores.array_names(Path(step["target"], "items"))
  assert [*names] == ["params.params.decoder.w"]
  assert [*stores.array_names(tmp_path / "in/4/model_params")] == [
    "decoder.w.value"
  ]


def test_f3_f4_nothing_of_jax_is_loaded_and_no_array_is_made(tmp_path):
  """A plan for four terabytes needs the metadata alone."""
  stores.write_hollow_item(
    tmp_path / "in/4/items",
    _STACK,
    shape=(1 << 17, 64, 1 << 17),
    chunk=(1 << 9, 64, 1 << 9),
  )
  script = (
    "import json, resource, sys\n"
    "from pathlib import Path\n"
    "from relayout.convert.options import Options\n"
    "from relayout.convert.run import convert\n"
    "options = Options(scan_layers='false', layer_pattern='flat')\n"
    "report = convert(Path(sys.argv[1]), Path(sys.argv[2]), options,\n"
    "                 dry_run=True)\n"
    "assert len(report.steps[0].plan.leaves) == 64\n"
    "assert report.peak_memory_bytes < 1 << 29\n"
    "assert not {'jax', 'orbax', 'tensorstore', 'tunix'} & {*sys.modules}\n"
  )
  done = subprocess.run(
    [sys.executable, "-c", script, tmp_path / "in", tmp_path / "out"],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  assert not (tmp_path / "out").exists()
