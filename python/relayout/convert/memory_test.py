"""Memory stays within the limit, whatever the size and number of arrays.

Anonymous memory of a process is sampled while it converts: pages of mapped
files are the kernel's to take back, and do not count.
"""

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import OptionError
from tests.support import processes, stores

_LIMIT = 16 << 20
_ALLOWANCE = 24 << 20
"""Listings, plans, thread stacks: what does not grow with the data."""

_LAYERS = 16
_UNSTACK = {"scan_layers": "false", "layer_pattern": "flat"}
_ROOT = "params.params.decoder.layers"


def _values(shape, dtype=np.float32):
  """Returns values that compress to a small file, and differ everywhere."""
  return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


def _convert(source, tmp_path, options, repeat=1):
  process = processes.start(
    source,
    tmp_path / "out",
    {"memory_limit": _LIMIT, **options},
    repeat=repeat,
  )
  found = processes.result(process)
  peaks = [peak - found["base"] for peak in found["peaks"]]
  [step] = found["report"]["steps"]
  assert step["applied"]["num_bytes_rewritten"] > 0
  assert step["expected_memory_bytes"] <= _LIMIT
  return peaks, tmp_path / "out/3/items"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
  """Returns a step whose one array, of four limits, is a single chunk."""
  root = tmp_path_factory.mktemp("large")

  def write(axis):
    run = root / str(axis)
    if not run.exists():
      shape = [1024, 1024]
      shape.insert(axis, _LAYERS)
      arrays = {f"{_ROOT}.w": _values(shape)}
      assert arrays[f"{_ROOT}.w"].nbytes == 4 * _LIMIT
      stores.write_item(run / "3/items", arrays)
    return run

  return write


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_unstacking_an_array_of_four_limits(large, tmp_path, axis):
  """D13, D19, E5, F1: an array above the limit is split, not refused."""
  options = {**_UNSTACK, "source_scan_axis": axis}
  [peak], item = _convert(large(axis), tmp_path, options)
  assert peak < _LIMIT + _ALLOWANCE
  found = stores.read_item(item)
  shape = [1024, 1024]
  shape.insert(axis, _LAYERS)
  expected = np.moveaxis(_values(shape), axis, 0)
  assert len(found) == _LAYERS
  for layer, values in enumerate(expected):
    assert np.array_equal(found[f"{_ROOT}_{layer}.w"], values)


@pytest.mark.parametrize(
  "options",
  [
    {"scan_axis": 0, "layer_pattern": "flat"},
    {"dtypes": {"weights": "bfloat16"}},
    {"chunk_bytes": 1 << 18},
    {"compression": "none"},
  ],
  ids=["restack", "cast", "rechunk", "decompress"],
)
def test_other_ways_to_rewrite_an_array_of_four_limits(
  large, tmp_path, options
):
  """F6, F9: neither a cast nor other chunks take more."""
  [peak], item = _convert(large(1), tmp_path, options)
  assert peak < _LIMIT + _ALLOWANCE
  [found] = stores.read_item(item).values()
  expected = _values((1024, _LAYERS, 1024))
  if "scan_axis" in options:
    expected = np.moveaxis(expected, 1, 0)
  assert np.array_equal(found, expected.astype(found.dtype))


def test_many_arrays_take_no_more_than_few(tmp_path):
  """E5, F1: what is in flight is bounded, not each array."""
  peaks = []
  for number, num_arrays in enumerate((4, 32)):
    run = tmp_path / f"in{number}"
    arrays = {
      f"{_ROOT}.w{i}": _values((256, _LAYERS, 128)) + i
      for i in range(num_arrays)
    }
    stores.write_item(run / "3/items", arrays)
    out = tmp_path / str(number)
    [peak], item = _convert(run, out, _UNSTACK)
    peaks.append(peak)
    names = stores.array_names(item)
    assert len(names) == num_arrays * _LAYERS
  assert max(peaks) < _LIMIT + _ALLOWANCE
  assert peaks[1] < peaks[0] + (8 << 20)


def test_memory_does_not_grow_over_conversions(large, tmp_path):
  """E2: a process that converts again and again reaches a plateau.

  What the allocator keeps of freed memory is not constant; buffers that are
  lost would be more.
  """
  options = {**_UNSTACK, "source_scan_axis": 1}
  peaks, _ = _convert(large(1), tmp_path, options, repeat=8)
  assert max(peaks) < _LIMIT + 3 * _ALLOWANCE


def test_a_chunk_of_four_limits_in_a_foreign_codec_is_refused(tmp_path):
  """Such a chunk is decoded as a whole: the limit holds, whoever decodes."""
  name = f"{_ROOT}.w"
  values = _values((1024, _LAYERS, 1024))
  spec = {
    "driver": "zarr",
    "kvstore": stores.kvstore(tmp_path / "in/3/items", f"{name}/"),
    "metadata": {
      "chunks": list(values.shape),
      "compressor": {"id": "zlib", "level": 1},
    },
    "dtype": "float32",
  }
  ts.open(spec, create=True, shape=values.shape).result().write(values).result()
  options = Options(
    scan_layers="false",
    layer_pattern="flat",
    params_only=True,
    memory_limit=_LIMIT,
  )
  with pytest.raises(OptionError, match=r"zlib.*Raise the limit"):
    convert(tmp_path / "in", tmp_path / "out", options)
