"""Arrays that no zarr library would write: metadata, names, chunk keys."""

import json

import pytest

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt.ocdbt_encoder import Ref
from tests.corrupt.runner import convert_arguments

_SIX = ocdbt.zarray([2, 3])


def _write(attack, entries, item="model_params"):
  """Writes entries, sorted, as the only leaf of a database."""
  body = ocdbt.leaf(sorted(entries))
  database = ocdbt.Database(attack.root / "4" / item)
  database.write_leaf(body, len(entries))


def _v3(**fields):
  value = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2, 3],
    "data_type": "float32",
    "chunk_grid": {
      "name": "regular",
      "configuration": {"chunk_shape": [2, 3]},
    },
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0.0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
  }
  return json.dumps(value | fields).encode()


def _grid(chunk_shape):
  return {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}


def _sharding(**fields):
  configuration = {
    "chunk_shape": [1, 3],
    "codecs": ["bytes"],
    "index_codecs": ["bytes", "crc32c"],
  }
  return [{"name": "sharding_indexed", "configuration": configuration | fields}]


def _write_v3(attack, metadata):
  _write(
    attack, [(b"a.value/zarr.json", metadata), (b"a.value/c/0/0", bytes(24))]
  )


def test_both_formats_are_fine(attack):
  _write_v3(attack, _v3())
  attack.harmless()


_NUMBERS = (
  -1,
  2**62,
  2**63,
  2**64,
  10**30,
  1.5,
  2.0,
  True,
  None,
  "2",
  [],
  {},
  float("nan"),
)


@pytest.mark.parametrize("number", _NUMBERS, ids=repr)
@pytest.mark.parametrize("field", ["shape", "chunks"])
def test_lengths_that_are_none(attack, field, number):
  metadata = ocdbt.zarray([2, 3], **{field: [number, 3]})
  _write(attack, ocdbt.entries({"a.value": metadata}))
  attack.refused("a.value/.zarray")


@pytest.mark.parametrize(
  "fields",
  [
    {"chunks": [0, 3]},
    {"chunks": [2, 0]},
    {"chunks": [3]},
    {"chunks": []},
    {"chunks": [2, 3, 1]},
    {"chunks": 6},
    {"shape": 6},
    {"shape": "23"},
    {"shape": None},
    {"shape": [1] * 1000, "chunks": [1] * 1000},
    {"shape": [2**40, 2**40], "chunks": [2**40, 2**40]},
    {"shape": [2**31] * 4, "chunks": [1] * 4},
    {"dtype": "<f5"},
    {"dtype": "f4"},
    {"dtype": 4},
    {"dtype": ""},
    {"dtype": "<f" + "4" * 5000},
    {"dtype": [["a", "<f4"]]},
    {"dtype": {"a": 1}},
    {"dtype": "|O"},
    {"order": "X"},
    {"order": None},
    {"order": 1},
    {"zarr_format": 3},
    {"zarr_format": "2"},
    {"zarr_format": 2.5},
    {"zarr_format": None},
    {"compressor": "zstd"},
    {"compressor": {"id": 5}},
    {"compressor": {}},
    {"compressor": []},
    {"filters": "none"},
    {"filters": [1]},
    {"filters": [{"id": None}]},
    {"fill_value": {"a": 1}},
    {"dimension_separator": "x"},
    {"dimension_separator": 1},
    {"dimension_separator": ".."},
  ],
  ids=lambda fields: json.dumps(fields)[:40],
)
def test_zarr_v2_metadata_that_lies(attack, fields):
  _write(attack, ocdbt.entries({"a.value": ocdbt.zarray([2, 3], **fields)}))
  attack.refused("a.value")


@pytest.mark.parametrize(
  "fields",
  [
    {"node_type": "group"},
    {"node_type": None},
    {"zarr_format": 2},
    {"shape": [-1, 3]},
    {"shape": [2**62, 2**62]},
    {"data_type": "float31"},
    {"data_type": {"name": 5}},
    {"data_type": []},
    {"chunk_grid": None},
    {"chunk_grid": "regular"},
    {"chunk_grid": {"name": "rectangular"}},
    {"chunk_grid": _grid([0, 3])},
    {"chunk_grid": _grid([2])},
    {"chunk_grid": _grid([2.5, 3])},
    {"chunk_grid": _grid("23")},
    {"chunk_key_encoding": {"name": "own"}},
    {"chunk_key_encoding": None},
    {
      "chunk_key_encoding": {
        "name": "default",
        "configuration": {"separator": "x"},
      }
    },
    {"codecs": []},
    {"codecs": None},
    {"codecs": "bytes"},
    {"codecs": [None]},
    {"codecs": [{"name": 5}]},
    {"codecs": ["bytes"] * 3},
    {"codecs": _sharding(chunk_shape=[0, 3])},
    {"codecs": _sharding(chunk_shape=[2, 2])},
    {"codecs": _sharding(chunk_shape=[3, 3])},
    {"codecs": _sharding(chunk_shape=[1])},
    {"codecs": _sharding(chunk_shape=[-1, 3])},
    {"codecs": _sharding(chunk_shape=None)},
    {"codecs": _sharding(codecs=None)},
    {"codecs": _sharding(codecs=[])},
    {"codecs": _sharding(index_location="middle")},
    {
      "codecs": [
        {"name": "transpose", "configuration": {"order": [0, 0]}},
        "bytes",
      ]
    },
    {
      "codecs": [
        {"name": "transpose", "configuration": {"order": [5, 1]}},
        "bytes",
      ]
    },
    {"fill_value": None},
    {"fill_value": {}},
    {"dimension_names": ["x"]},
    {"dimension_names": [1, 2]},
    {"storage_transformers": [{"name": "x"}]},
    {"unheard_of": {"name": "x"}},
    {"attributes": 5},
  ],
  ids=lambda fields: json.dumps(fields)[:40],
)
def test_zarr_v3_metadata_that_lies(attack, fields):
  _write_v3(attack, _v3(**fields))
  attack.refused("a.value")


@pytest.mark.parametrize(
  "fields",
  [
    {"codecs": ["unheard_of"]},
    {"codecs": _sharding(index_codecs=[])},
    {"codecs": _sharding(index_codecs=["zstd"])},
  ],
  ids=["unknown", "no index", "compressed index"],
)
def test_codecs_that_no_one_can_read_are_carried(attack, fields):
  """A conversion does not decode: the target is as bad as the source."""
  _write_v3(attack, _v3(**fields))
  attack.carried("a.value")


@pytest.mark.parametrize("value", [[], "\x1b[2J", "abc"], ids=repr)
def test_fill_values_that_no_one_can_read_are_carried(attack, value):
  metadata = ocdbt.zarray([2, 3], fill_value=value)
  _write(attack, ocdbt.entries({"a.value": metadata}))
  attack.carried("a.value")


_DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000

_BROKEN_JSON = {
  "empty": b"",
  "cut short": _SIX[:-1],
  "array": b"[]",
  "number": b"5",
  "null": b"null",
  "text": b'"zarr"',
  "not utf-8": b'{"shape": "\xff\xfe"}',
  "utf-16": _SIX.decode().encode("utf-16"),
  "byte order mark": b"\xef\xbb\xbf" + _SIX,
  "zeros": bytes(200),
  "deep object": _DEEP,
  "deep array": b"[" * 100_000 + b"]" * 100_000,
  "key twice": _SIX[:-1] + b',"shape":[3,2]}',
  "huge integer": _SIX.replace(b'"shape": [2', b'"shape": [' + b"9" * 5000),
  "huge exponent": _SIX.replace(b'"shape": [2', b'"shape": [1e999'),
  "surrogate": _SIX.replace(b'"C"', b'"\\ud800"'),
  "more after the end": _SIX + b"{}",
  "nan": _SIX.replace(b"[2, 3]", b"[NaN, 3]"),
}


@pytest.mark.parametrize("kind", _BROKEN_JSON)
def test_metadata_that_is_no_json(attack, kind):
  metadata = _BROKEN_JSON[kind]
  entries = [(b"a.value/.zarray", metadata), (b"a.value/0.0", bytes(24))]
  _write(attack, entries)
  attack.refused("a.value/.zarray")


# Names.


@pytest.mark.parametrize(
  "name",
  [
    "..", ".", "../../x", "a/../b.value", "/etc/passwd", "a//b.value",
    "a/b.value", "a/.value", " ", "a\nb.value", "a\x1b[2Jb.value",
    "a\0b.value", "a\rb.value", "a..value", ".value", "value", "a.",
    "a.value.", "\u202ea.value", "é.value", "x" * 60_000,
    ".".join("x" * 30_000), "a.value/0", "0", "-1", "base", "base.value",
    "_METADATA", "manifest.ocdbt", "d/data", "c/0/0",
  ],
  ids=lambda name: repr(name[:30]),
)  # fmt: skip
def test_odd_names_of_arrays(attack, name):
  """Names are keys in a database, never paths: odd ones do no harm."""
  _write(attack, ocdbt.entries({name: _SIX}))
  attack.refused_or_harmless()


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\x80.value", b"\xed\xa0\x80"])
def test_names_that_are_no_text(attack, name):
  _write(attack, ocdbt.entries({name: _SIX}))
  attack.refused("model_params", "UTF-8")


@pytest.mark.parametrize(
  "names",
  [
    ("a.value", "a"),
    ("a", "a.b"),
    ("a.value", "a.b.value"),
    ("a.value", "a.value.value"),
    ("a.value", "a.value/0"),
    ("a.value", "a.value/b"),
    ("a/b.value", "a.value"),
    ("base.a.value", "b.value"),
    ("decoder.layers_0.w.value", "decoder.layers.0.w.value"),
    ("decoder.layers_0.w.value", "decoder.layers.w.value"),
    ("decoder.layers_0.w.value", "decoder.layers_00.w.value"),
    ("decoder.layers_0.w.value", "decoder.layers_99999999999999999999.w.value"),
    ("decoder.layers_1.w.value", "decoder.layers_3.w.value"),
  ],
  ids=str,
)
@pytest.mark.parametrize(
  "options", [(), ("--scan_layers=true", "--layer_pattern=flat")]
)
def test_names_that_clash(attack, names, options):
  _write(attack, ocdbt.entries(dict.fromkeys(names, _SIX)))
  attack.refused_or_harmless(options=options)


def test_both_kinds_of_metadata(attack):
  entries = [(b"a.value/.zarray", _SIX), (b"a.value/zarr.json", _v3())]
  _write(attack, [*entries, (b"a.value/0.0", bytes(24))])
  attack.refused("a.value")


@pytest.mark.parametrize(
  "key", [b"", b"stray", b".zgroup", b"a.value", b"b/0.0", b"a.value/"]
)
def test_keys_of_no_array(attack, key):
  _write(attack, [*ocdbt.entries({"a.value": _SIX}), (key, b"")])
  attack.refused_or_harmless(str(attack.root / "4"))


def test_many_keys_of_no_array(attack):
  strays = [(b"stray%d" % i, b"") for i in range(5000)]
  _write(attack, [*ocdbt.entries({"a.value": _SIX}), *strays])
  attack.refused("model_params", "stray")


# Chunk keys.


@pytest.mark.parametrize(
  "key",
  [
    "0", "0.0.0", "1.0", "0.1", "2.0", "-1.0", "00.0", "0.00", "+0.0", " 0.0",
    "0.0 ", "0x0.0", "0,0", "0/0", "c/0/0", "c.0.0", "0.", ".0", ".", "..",
    "0..0", "\u0660.0", "18446744073709551616.0", "99999999999999999999999.0",
    "4294967296.0", "0.0/", "0.0\0", "\xff",
  ],
)  # fmt: skip
def test_chunk_keys_of_no_chunk(attack, key):
  entries = ocdbt.entries({"a.value": _SIX})
  encoded = key.encode("latin-1" if key == "\xff" else "utf-8")
  _write(attack, [*entries, (b"a.value/" + encoded, bytes(24))])
  attack.refused("a.value/")


@pytest.mark.parametrize(
  "key", ["c", "c/0", "c/0/0/0", "c/00/0", "c/1/0", "0/0", "c//0"]
)
def test_chunk_keys_of_no_chunk_v3(attack, key):
  entries = [(b"a.value/zarr.json", _v3()), (b"a.value/c/0/0", bytes(24))]
  entries.append((b"a.value/" + key.encode(), bytes(24)))
  if key == "c/0/0/0":
    entries[-1] = (b"a.value/c/0/0/0", bytes(24))
  _write(attack, entries)
  attack.refused("a.value/")


def test_a_grid_of_more_chunks_than_can_be_counted(attack):
  """No one may loop over the chunks that there could be."""
  lengths = {"shape": [2**31, 2**27], "chunks": [1, 1]}
  metadata = ocdbt.zarray([1, 1], **lengths)
  _write(attack, ocdbt.entries({"a.value": metadata}))
  done = attack.runner.run(*convert_arguments(attack.root, attack.target))
  assert done.code in (0, 2)
  assert done.seconds < 10
  assert not attack.runner.run("inspect", attack.root).crashed
  assert not attack.runner.run("verify", attack.root, attack.target).crashed


# Values that decide what the target becomes.


_OPTIMIZER = {
  "step.value": ("<u4", b"\4\0\0\0"),
  "opt_state.0.count.value": ("<i4", b"\4\0\0\0"),
  "opt_state.2.count.value": ("<i4", b"\4\0\0\0"),
}


def _write_optimizer(attack, **change):
  """Writes a step with AdamW's counts; `change` is a chunk or metadata."""
  _write(attack, ocdbt.entries({"w.value": _SIX}))
  entries = ocdbt.entries(
    {f"opt_state.0.{slot}.w.value": _SIX for slot in ("mu", "nu")}
  )
  for name, (dtype, chunk) in _OPTIMIZER.items():
    metadata = ocdbt.zarray([], dtype=dtype)
    entries.append((f"{name}/.zarray".encode(), metadata))
    entries.append((f"{name}/0".encode(), chunk))
  merged = dict(entries)
  for key, value in change.items():
    merged[key.encode()] = value
  present = [(key, value) for key, value in merged.items() if value is not None]
  _write(attack, present, "optimizer_state")


def test_a_whole_step_is_fine(attack):
  _write_optimizer(attack)
  attack.harmless()


@pytest.mark.parametrize(
  "chunk",
  [
    b"",
    b"\4",
    b"\4\0\0",
    b"\4\0\0\0\0",
    bytes(1000),
    b"\0\0\0\x80",
    b"\xff" * 4,
  ],
)
def test_a_step_that_is_damaged(attack, chunk):
  _write_optimizer(attack, **{"step.value/0": chunk})
  attack.refused("step")


def test_a_step_that_leads_nowhere(attack):
  _write_optimizer(attack, **{"step.value/0": Ref(2**40, 4)})
  attack.refused("optimizer_state", "step.value/0")


@pytest.mark.parametrize(
  "fields",
  [
    {"shape": [1], "chunks": [1]},
    {"shape": [0], "chunks": [1]},
    {"shape": [10**6], "chunks": [10**6]},
    {"dtype": "<f4"},
    {"dtype": "<c8"},
    {"dtype": "|b1"},
    {"compressor": {"id": "zstd"}},
    {"compressor": {"id": "unheard of"}},
    {"compressor": {"id": "gzip"}},
    {"compressor": {"id": "blosc"}},
    {"filters": [{"id": "delta"}]},
  ],
  ids=str,
)
def test_a_step_of_another_kind(attack, fields):
  metadata = ocdbt.zarray([], **({"dtype": "<u4"} | fields))
  _write_optimizer(attack, **{"step.value/.zarray": metadata})
  attack.refused_or_harmless("step")


@pytest.mark.parametrize("lost", ["w", "opt_state.0.mu.w", "opt_state.0.count"])
def test_parts_of_the_optimizer_that_are_missing(attack, lost):
  if lost == "w":
    _write_optimizer(attack)
    manifest = attack.item / "manifest.ocdbt"
    manifest.unlink()
    (attack.item / "d" / "data").unlink()
    (attack.item / "d").rmdir()
    attack.item.rmdir()
    _write(attack, ocdbt.entries({"v.value": _SIX}))
  else:
    keys = (f"{lost}.value/.zarray", f"{lost}.value/0.0", f"{lost}.value/0")
    _write_optimizer(attack, **dict.fromkeys(keys))
  attack.refused("--params_only")
