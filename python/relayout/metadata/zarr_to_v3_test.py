import json

import ml_dtypes  # noqa: F401, registers bfloat16 and its like with NumPy
import numpy as np
import pytest
import tensorstore as ts

from relayout import _native
from relayout.errors import UnsupportedError
from relayout.metadata import zarr_array
from relayout.metadata.zarr_to_v3 import to_zarr3
from tests.native import rekeying
from tests.support.specs import parse, spec_of_v2, spec_of_v3

COMPRESSORS = [
  None,
  {"id": "zstd", "level": 3},
  {"id": "gzip", "level": 9},
  {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
  {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2},
  {"id": "blosc", "cname": "blosclz", "clevel": 1, "shuffle": 0},
  {"id": "blosc"},
]
DTYPES = [
  "bool",
  "int8",
  "uint16",
  "int64",
  "float16",
  "float32",
  "float64",
  "bfloat16",
  "float8_e4m3fn",
  "float8_e5m2",
  "int4",
  "complex64",
]


def _values(shape, dtype):
  values = np.random.default_rng(0).integers(1, 7, shape)
  return values.astype(ts.dtype(dtype).numpy_dtype)


def _write_v2(directory, values, dtype, chunks, /, **metadata):
  """Writes an array of zarr v2 as files; returns its listing and spec."""
  store = ts.open(
    {
      "driver": "zarr",
      "kvstore": {"driver": "file", "path": f"{directory}/a/"},
      "metadata": {"chunks": chunks, **metadata},
    },
    create=True,
    dtype=ts.dtype(dtype),
    shape=values.shape,
  ).result()
  store.write(values).result()
  listing = _native.list_directory(directory)
  (entry,) = listing.arrays()
  return listing, parse(".zarray", json.loads(entry.metadata))


def _rekey(listing, old, new, target):
  """Gives the chunks of `old` the keys and metadata of `new`."""
  move = _native.ArrayMove(
    0,
    "a",
    "b",
    _native.ChunkKeyFormat(old.key_style, old.key_separator),
    _native.ChunkKeyFormat(new.key_style, new.key_separator),
    list(old.grid),
    [("axis", axis) for axis in range(old.rank)],
  )
  literal = (f"b/{new.metadata_key}", zarr_array.array_metadata_bytes(new))
  plan = _native.plan_rekey(
    [listing], moves=[move], literals=[literal], drops=[]
  )
  rekeying.link_and_apply(plan, [listing], target)


def _read(directory):
  kvstore = {"driver": "ocdbt", "base": f"file://{directory}/", "path": "b/"}
  return ts.open({"driver": "zarr3", "kvstore": kvstore}, read=True).result()


def _check(tmp_path, values, dtype, chunks, /, **metadata):
  listing, old = _write_v2(tmp_path / "in", values, dtype, chunks, **metadata)
  new = to_zarr3(old)
  parsed = zarr_array.parse_array_metadata(
    "zarr.json", zarr_array.array_metadata_bytes(new)
  )
  assert parsed == new
  _rekey(listing, old, new, tmp_path / "out")
  read = _read(tmp_path / "out").read().result()
  assert read.dtype == values.dtype
  assert read.tobytes() == values.tobytes()
  return new


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_compressors(tmp_path, compressor, separator, order):
  _check(
    tmp_path,
    _values((5, 7, 2), "float32"),
    "float32",
    [2, 3, 2],
    compressor=compressor,
    dimension_separator=separator,
    order=order,
  )


@pytest.mark.parametrize("compressor", [None, {"id": "blosc", "shuffle": -1}])
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(tmp_path, dtype, compressor):
  values = _values((3, 4), dtype)
  _check(tmp_path, values, dtype, [2, 2], compressor=compressor)


@pytest.mark.parametrize("dtype", [">i4", ">f8"])
def test_big_endian(tmp_path, dtype):
  values = np.arange(6, dtype=dtype[1:]).reshape(2, 3)
  name = values.dtype.name
  new = _check(tmp_path, values, name, [1, 2], dtype=dtype, compressor=None)
  assert new.dtype == name


@pytest.mark.parametrize("shape", [(), (0, 2), (3,)])
def test_ranks(tmp_path, shape):
  chunks = [max(1, n) for n in shape]
  _check(tmp_path, _values(shape, "int32"), "int32", chunks, compressor=None)


FILLS = [
  ("float32", "<f4", None, 0),
  ("float32", "<f4", 1.5, 1.5),
  ("float32", "<f4", "NaN", np.nan),
  ("float32", "<f4", "-Infinity", -np.inf),
  ("bfloat16", "bfloat16", None, 0),
  ("int32", "<i4", -3, -3),
  ("int32", "<i4", None, 0),
  ("bool", "|b1", None, False),
  ("bool", "|b1", True, True),
  ("complex64", "<c8", None, 0),
  ("complex64", "<c8", [1.0, -2.0], 1 - 2j),
]


@pytest.mark.parametrize(("dtype", "code", "fill", "expected"), FILLS)
def test_fill_values(tmp_path, dtype, code, fill, expected):
  spec = spec_of_v2([2], [1], dtype=code, fill_value=fill, compressor=None)
  (tmp_path / "in" / "a").mkdir(parents=True)
  metadata = zarr_array.array_metadata_bytes(spec)
  (tmp_path / "in" / "a" / ".zarray").write_bytes(metadata)
  listing = _native.list_directory(tmp_path / "in")
  _rekey(listing, spec, to_zarr3(spec), tmp_path / "out")
  store = _read(tmp_path / "out")
  expected = np.full(2, expected, ts.dtype(dtype).numpy_dtype)
  assert store.read().result().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
  "changes",
  [
    {"compressor": {"id": "zlib", "level": 1}},
    {"compressor": {"id": "bz2", "level": 1}},
    {"compressor": {"id": "blosc", "cname": "other"}},
    {"filters": [{"id": "delta", "dtype": "<f4"}]},
  ],
)
def test_what_v3_lacks(changes):
  with pytest.raises(UnsupportedError, match="rewrite"):
    to_zarr3(spec_of_v2([4], [2], **changes))


@pytest.mark.parametrize("level", [-3, 99, "x", None, 10**30])
@pytest.mark.parametrize("identifier", ["zstd", "gzip", "blosc"])
def test_odd_settings_of_the_writer(tmp_path, identifier, level):
  """Readers need none of them, but refuse the odd ones."""
  key = "clevel" if identifier == "blosc" else "level"
  values = _values((4,), "float32")
  listing, old = _write_v2(
    tmp_path / "in", values, "float32", [2], compressor={"id": identifier}
  )
  odd = {**old.raw, "compressor": {"id": identifier, key: level}}
  odd["compressor"] |= {"shuffle": 7, "blocksize": -1}
  new = to_zarr3(parse(".zarray", odd))
  _rekey(listing, old, new, tmp_path / "out")
  read = _read(tmp_path / "out").read().result()
  assert read.tobytes() == values.tobytes()


def test_v3_comes_back():
  spec = spec_of_v3([4], [2])
  assert to_zarr3(spec) is spec
