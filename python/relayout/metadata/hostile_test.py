"""Any file of a checkpoint may be damaged or made to harm.

Each parser gets real content with one value replaced: it must return, or raise
an error of ours; nothing else may escape.
"""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relayout.errors import RelayoutError
from relayout.metadata import (
  array_metadatas,
  sharding,
  step_metadata,
  tree_metadata,
  zarr_array,
  zarr_stack,
)

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
_V3 = {
  "attributes": {"a": 1},
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 2]}},
  "chunk_key_encoding": {
    "name": "default",
    "configuration": {"separator": "/"},
  },
  "codecs": [
    {"name": "transpose", "configuration": {"order": [0, 1]}},
    {
      "name": "sharding_indexed",
      "configuration": {
        "chunk_shape": [2, 2],
        "codecs": [_BYTES, {"name": "zstd", "configuration": {"level": 3}}],
        "index_codecs": [_BYTES, {"name": "crc32c"}],
        "index_location": "end",
      },
    },
  ],
  "data_type": "bfloat16",
  "dimension_names": ["x", None],
  "fill_value": 0.0,
  "node_type": "array",
  "shape": [8, 2],
  "zarr_format": 3,
}
_TREE = {
  "tree_metadata": {
    "('a', '0')": {
      "key_metadata": [
        {"key": "a", "key_type": 2},
        {"key": "0", "key_type": 1},
      ],
      "value_metadata": {
        "value_type": "jax.Array",
        "skip_deserialize": False,
        "write_shape": [4, 2],
      },
    }
  },
  "use_ocdbt": True,
  "use_zarr3": True,
  "store_array_data_equal_to_fill_value": True,
  "custom_metadata": None,
}
_ARRAYS = {
  "array_metadatas": [
    {
      "array_metadata": {
        "param_name": "a.0",
        "write_shape": [4, 2],
        "chunk_shape": [4, 2],
        "ext_metadata": {"random_key_impl": "rbg"},
      }
    }
  ]
}
_STEP = {
  "item_handlers": {"items": "handler"},
  "metrics": {},
  "performance_metrics": {"a": 0.5},
  "init_timestamp_nsecs": 1,
  "commit_timestamp_nsecs": 2,
  "custom_metadata": {"scan_layers": True},
}
_NAMED = {"sharding_type": "NamedSharding", "partition_spec": ["a", ["b", "c"]]}


def _rewrite_zarr(key):
  def parse(data):
    spec = zarr_array.parse_array_metadata(key, data)
    assert all(length >= 0 for length in spec.shape)
    assert all(length >= 1 for length in spec.chunk_shape)
    assert len(spec.grid) == spec.rank
    zarr_array.array_metadata_bytes(spec)
    zarr_stack.stack_array_specs([spec, spec], spec.rank, ["x", "y"])

  return parse


def _rewrite_tree(data):
  tree_metadata.tree_metadata_bytes(
    tree_metadata.parse_tree_metadata(data, "f")
  )


def _rewrite_arrays(data):
  array_metadatas.array_metadatas_bytes(
    array_metadatas.parse_array_metadatas(data, "f")
  )


def _rewrite_step(data):
  step_metadata.step_metadata_bytes(
    step_metadata.parse_step_metadata(data, "f")
  )


def _rewrite_shardings(data):
  sharding.shardings_bytes(sharding.parse_shardings(data, "f"))


def _restack_sharding(data):
  sharding.stacked_sharding(data.decode(), 1, 2)
  sharding.unstacked_sharding(data.decode(), 1)


_PARSERS = {
  "v2": (_V2, _rewrite_zarr("a/.zarray")),
  "v3": (_V3, _rewrite_zarr("a/zarr.json")),
  "tree": (_TREE, _rewrite_tree),
  "arrays": (_ARRAYS, _rewrite_arrays),
  "step": (_STEP, _rewrite_step),
  "shardings": ({"YQ==": json.dumps(_NAMED)}, _rewrite_shardings),
  "sharding": (_NAMED, _restack_sharding),
}

_VALUES = st.recursive(
  st.none()
  | st.booleans()
  | st.integers(-3, 5)
  | st.sampled_from([1 << 31, 1 << 62, 1 << 64, 10**400, -(1 << 70)])
  | st.floats()
  | st.text(max_size=4)
  | st.sampled_from(["F", "v2", "transpose", "NaN", "\ud800", "int4", "0"]),
  lambda inner: (
    st.lists(inner, max_size=4)
    | st.dictionaries(
      st.sampled_from(["name", "id", "configuration", "order", "key"]), inner
    )
  ),
  max_leaves=6,
)


def _places(value, path=()):
  yield path
  if isinstance(value, dict):
    for key, child in value.items():
      yield from _places(child, (*path, key))
  elif isinstance(value, list):
    for i, child in enumerate(value):
      yield from _places(child, (*path, i))


def _replaced(value, path, new):
  if not path:
    return new
  result = copy.deepcopy(value)
  place = result
  for key in path[:-1]:
    place = place[key]
  place[path[-1]] = new
  return result


@pytest.mark.parametrize("name", _PARSERS)
@settings(
  max_examples=200,
  deadline=None,
  suppress_health_check=[HealthCheck.too_slow],
)
@given(st.data())
def test_only_our_errors_escape(name, data):
  content, parse = _PARSERS[name]
  path = data.draw(st.sampled_from(list(_places(content))))
  changed = _replaced(content, path, data.draw(_VALUES))
  message = ""
  try:
    parse(json.dumps(changed).encode())
  except RelayoutError as error:
    message = str(error)
  assert len(message) < 2000


@pytest.mark.parametrize("name", _PARSERS)
def test_content_itself_passes(name):
  content, parse = _PARSERS[name]
  parse(json.dumps(content).encode())


@pytest.mark.parametrize("name", _PARSERS)
def test_every_cut_is_refused(name):
  content, parse = _PARSERS[name]
  data = json.dumps(content).encode()
  for length in range(len(data)):
    with pytest.raises(RelayoutError):
      parse(data[:length])
