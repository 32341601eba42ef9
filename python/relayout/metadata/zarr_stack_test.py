import copy
import json

import numpy as np
import pytest
import tensorstore as ts
from hypothesis import given, settings
from hypothesis import strategies as st

from relayout.errors import LayoutError
from relayout.metadata import zarr_array, zarr_stack

_V2 = {
  "chunks": [4, 2],
  "compressor": {"id": "zstd", "level": 1},
  "dimension_separator": ".",
  "dtype": "<f4",
  "fill_value": None,
  "filters": None,
  "order": "C",
  "shape": [8, 2],
  "zarr_format": 2,
}
_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
_SHARDING = {
  "name": "sharding_indexed",
  "configuration": {
    "chunk_shape": [2, 2],
    "codecs": [_BYTES, _ZSTD],
    "index_codecs": [_BYTES, {"name": "crc32c"}],
  },
}
_V3 = {
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 2]}},
  "chunk_key_encoding": {"name": "default"},
  "codecs": [_SHARDING],
  "data_type": "float32",
  "fill_value": 0.0,
  "node_type": "array",
  "shape": [8, 2],
  "zarr_format": 3,
}
_TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
_IDENTITY = {"name": "transpose", "configuration": {"order": [0, 1]}}


def _spec(metadata, **changes):
  metadata = copy.deepcopy(metadata) | changes
  key = "a/.zarray" if metadata["zarr_format"] == 2 else "a/zarr.json"
  return zarr_array.parse_array_metadata(key, json.dumps(metadata).encode())


def _reparsed(spec):
  """Returns what the written metadata of `spec` says."""
  data = zarr_array.array_metadata_bytes(spec)
  return zarr_array.parse_array_metadata(f"a/{spec.metadata_key}", data)


@pytest.mark.parametrize("metadata", [_V2, _V3])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_fields_and_raw_agree(metadata, axis):
  specs = [_spec(metadata)] * 3
  stacked = zarr_stack.stack_array_specs(specs, axis, ["x", "y", "z"])
  expected = [8, 2]
  expected.insert(axis, 3)
  assert stacked.shape == tuple(expected)
  assert stacked.chunk_shape[axis] == 1
  assert _reparsed(stacked) == stacked


def test_inner_chunks_gain_the_axis():
  stacked = zarr_stack.stack_array_specs([_spec(_V3)] * 2, 1, ["x", "y"])
  assert stacked.inner_chunk_shape == (2, 1, 2)


@pytest.mark.parametrize(
  ("metadata", "changes", "aspect"),
  [
    (_V2, {"shape": [8, 3]}, r"shape \[8, 3\], but x has \[8, 2\]"),
    (_V2, {"chunks": [8, 2]}, r"chunk shape \[8, 2\], but x has \[4, 2\]"),
    (_V2, {"dtype": "<f8"}, "data type float64, but x has float32"),
    (_V2, {"dtype": ">f4"}, "byte order big, but x has little"),
    (_V2, {"fill_value": 1.0}, r"fill value 1\.0, but x has null"),
    (_V2, {"compressor": None}, 'compressor null, but x has {"id": "zstd"}'),
    (_V2, {"dimension_separator": "/"}, "chunk keys v2, separated by '/'"),
    (_V2, {"filters": [{"id": "delta"}]}, "filters"),
    (_V3, {"codecs": [_BYTES, _ZSTD]}, "inner chunk shape None"),
    (
      _V3,
      {"chunk_key_encoding": {"name": "v2"}},
      "chunk keys v2, separated by '.', but x has default",
    ),
  ],
)
def test_arrays_that_differ_are_refused(metadata, changes, aspect):
  specs = [_spec(metadata), _spec(metadata, **changes)]
  with pytest.raises(LayoutError, match=aspect) as caught:
    zarr_stack.stack_array_specs(specs, 0, ["x", "y"])
  assert str(caught.value).startswith("y: ")
  assert "rewrite the data" in str(caught.value)


def test_versions_that_differ_are_refused():
  with pytest.raises(LayoutError, match="zarr version 3, but x has 2"):
    zarr_stack.stack_array_specs([_spec(_V2), _spec(_V3)], 0, ["x", "y"])


@pytest.mark.parametrize(
  "spec",
  [
    _spec(_V2, order="F"),
    _spec(_V3, codecs=[_TRANSPOSE, _BYTES]),
  ],
)
def test_other_orders_are_refused(spec):
  with pytest.raises(LayoutError, match="x: chunks hold their values"):
    zarr_stack.stack_array_specs([spec] * 2, 0, ["x", "y"])


def test_filters_are_refused():
  spec = _spec(_V2, filters=[{"id": "delta"}])
  with pytest.raises(LayoutError, match="x: chunks pass through the filters"):
    zarr_stack.stack_array_specs([spec] * 2, 0, ["x", "y"])


def test_what_changes_no_value_may_differ():
  zarr_stack.stack_array_specs(
    [_spec(_V2), _spec(_V2, compressor={"id": "zstd", "level": 9})],
    0,
    ["x", "y"],
  )
  other = [_BYTES, {"name": "zstd", "configuration": {"level": 9}}]
  zarr_stack.stack_array_specs(
    [_spec(_V3, codecs=[_BYTES, _ZSTD]), _spec(_V3, codecs=other)],
    0,
    ["x", "y"],
  )
  zarr_stack.stack_array_specs(
    [_spec(_V3), _spec(_V3, fill_value=0)], 0, ["x", "y"]
  )


def test_identity_transposition_is_left_out():
  spec = _spec(_V3, codecs=[_IDENTITY, _BYTES])
  stacked = zarr_stack.stack_array_specs([spec] * 2, 0, ["x", "y"])
  assert stacked.raw["codecs"] == [_BYTES]


def test_vectors_have_no_order():
  vector = {"shape": [8], "chunks": [4], "order": "F"}
  spec = _spec(_V2, **vector)
  stacked = zarr_stack.stack_array_specs([spec] * 2, 1, ["x", "y"])
  assert stacked.raw["order"] == "C"


def test_dimension_names():
  named = _spec(_V3, dimension_names=["in", "out"])
  stacked = zarr_stack.stack_array_specs([named] * 2, 1, ["x", "y"])
  assert stacked.raw["dimension_names"] == ["in", None, "out"]
  mixed = zarr_stack.stack_array_specs([named, _spec(_V3)], 1, ["x", "y"])
  assert "dimension_names" not in mixed.raw


def test_misuse_is_a_value_error():
  with pytest.raises(ValueError, match="0 arrays"):
    zarr_stack.stack_array_specs([], 0, [])
  with pytest.raises(ValueError, match="axis 3"):
    zarr_stack.stack_array_specs([_spec(_V2)], 3, ["x"])
  with pytest.raises(ValueError, match="under 2 names"):
    zarr_stack.stack_array_specs([_spec(_V2)], 0, ["x", "y"])


def test_inputs_stay_as_they_were():
  spec = _spec(_V3, dimension_names=["in", "out"])
  before = copy.deepcopy(spec.raw)
  zarr_stack.stack_array_specs([spec] * 2, 1, ["x", "y"])
  assert spec.raw == before


def _memory_array(values, chunk, driver):
  """Returns an array's keys and values, written by TensorStore."""
  kvstore = ts.KvStore.open("memory://").result()
  if driver == "zarr":
    metadata = {"chunks": chunk}
  else:
    metadata = {
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}
    }
  store = ts.open(
    {"driver": driver, "metadata": metadata},
    kvstore=kvstore,
    create=True,
    dtype=ts.dtype(values.dtype),
    shape=values.shape,
  ).result()
  store.write(values).result()
  return {key.decode(): kvstore[key] for key in kvstore.list().result()}


def _stacked_key(key, driver, rank, axis, layer):
  if driver == "zarr":
    parts = key.split(".")[:rank]  # a scalar's key is 0
    return ".".join([*parts[:axis], str(layer), *parts[axis:]])
  parts = key.split("/")[1:]
  return "/".join(["c", *parts[:axis], str(layer), *parts[axis:]])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_tensorstore_reads_the_stack_of_moved_chunks(data):
  driver = data.draw(st.sampled_from(["zarr", "zarr3"]))
  shape = data.draw(st.lists(st.integers(1, 5), max_size=3))
  chunk = [data.draw(st.integers(1, length)) for length in shape]
  axis = data.draw(st.integers(0, len(shape)))
  seed = data.draw(st.integers(0, 1 << 16))
  rng = np.random.default_rng(seed)
  layers = [rng.normal(size=shape).astype(np.float32) for _ in range(3)]
  arrays = [_memory_array(values, chunk, driver) for values in layers]
  metadata_key = ".zarray" if driver == "zarr" else "zarr.json"
  specs = [
    zarr_array.parse_array_metadata(f"a/{metadata_key}", array[metadata_key])
    for array in arrays
  ]
  stacked = zarr_stack.stack_array_specs(specs, axis, ["x", "y", "z"])
  target = ts.KvStore.open("memory://").result()
  target[metadata_key] = zarr_array.array_metadata_bytes(stacked)
  for layer, array in enumerate(arrays):
    for key, value in array.items():
      if key != metadata_key:
        stacked_key = _stacked_key(key, driver, len(shape), axis, layer)
        target[stacked_key] = value
  store = ts.open({"driver": driver}, kvstore=target, open=True).result()
  assert store.read().result().tobytes() == np.stack(layers, axis).tobytes()
