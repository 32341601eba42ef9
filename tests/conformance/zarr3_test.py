"""Unscanned zarr v3, with and without zarr shards, stacked and verified."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.verify import verify
from tests.support import stores

_KEEP = Options()
_STACK = Options(scan_layers="true", layer_pattern="flat")
_LAYERS = 3
_SHAPES = {
  # Name: shape, chunk, inner chunk; edges that chunks do not divide.
  "mlp.wi_0.kernel": ((8, 10), (4, 6), (2, 3)),
  "self_attention.out.kernel": ((4, 3, 5), (2, 2, 4), (1, 2, 2)),
  "norm.scale": ((8,), (4,), (2,)),
}
_NORM = "decoder.decoder_norm.scale"
_EMBEDDING = "token_embedder.embedding"


def _weights(dtype):
  """Returns weights by name, random, apart from one all-zero chunk."""
  rng = np.random.default_rng(1)

  def values(shape):
    found = rng.standard_normal(shape).astype(dtype)
    found.reshape(-1)[:2] = 0
    return found

  weights = {_NORM: values((8,)), _EMBEDDING: values((16, 8))}
  for layer in range(_LAYERS):
    for name, (shape, *_) in _SHAPES.items():
      weights[f"decoder.layers_{layer}.{name}"] = values(shape)
  return weights


def _write(step, dtype, *, is_sharded):
  """Writes a step of AdamW; returns its arrays by label."""
  weights = _weights(dtype)
  model = {f"{name}.value": values for name, values in weights.items()}
  optimizer = {"step.value": np.uint32(5)}
  optimizer["opt_state.0.count.value"] = np.int32(5)
  optimizer["opt_state.2.count.value"] = np.int32(5)
  for number, slot in enumerate(("mu", "nu"), 1):
    for name, values in weights.items():
      moment = (values.astype(np.float32) + number).astype(np.float32)
      optimizer[f"opt_state.0.{slot}.{name}.value"] = moment
  for item, arrays in (("model_params", model), ("optimizer_state", optimizer)):
    chunks, inner = _chunks(arrays)
    stores.write_item(
      step / item,
      arrays,
      zarr_format=3,
      chunks=chunks,
      inner_chunks=inner if is_sharded else None,
    )
  labelled = {f"model_params/{name}": values for name, values in model.items()}
  return labelled | {
    f"optimizer_state/{name}": values for name, values in optimizer.items()
  }


def _chunks(arrays):
  """Returns the chunk shapes and inner chunk shapes of the layers' arrays."""
  chunks, inner = {}, {}
  for name in arrays:
    for suffix, (_, chunk, inner_chunk) in _SHAPES.items():
      if name.endswith(f"{suffix}.value") and "layers_" in name:
        chunks[name], inner[name] = chunk, inner_chunk
  assert chunks
  return chunks, inner


def _same(left, right):
  left, right = np.asarray(left), np.asarray(right)
  same_kind = left.dtype == right.dtype and left.shape == right.shape
  return same_kind and left.tobytes() == right.tobytes()


@pytest.fixture(
  scope="module",
  params=[
    (np.float32, False),
    (np.float32, True),
    (ml_dtypes.bfloat16, False),
    (ml_dtypes.bfloat16, True),
  ],
  ids=["f32", "f32-shards", "bf16", "bf16-shards"],
)
def source(request, tmp_path_factory):
  root = tmp_path_factory.mktemp("source")
  dtype, is_sharded = request.param
  return root, _write(root / "5", dtype, is_sharded=is_sharded), is_sharded


def _converted(root, out, options):
  [step] = convert(root, out, options).to_json()["steps"]
  return step, Path(step["target"], "items")


def _check_metadata(item, *, is_sharded, is_stacked):
  """Checks that chunks are what they were, with 1 at the stacked axis."""
  store = ts.KvStore.open(stores.kvstore(item)).result()
  for name, (shape, chunk, inner) in _SHAPES.items():
    layers = "layers" if is_stacked else "layers_2"
    key = f"params.params.decoder.{layers}.{name}/zarr.json"
    metadata = json.loads(store[key])
    wanted = [list(shape), list(chunk), list(inner)]
    if is_stacked:
      for lengths, length in zip(wanted, (_LAYERS, 1, 1), strict=True):
        lengths.insert(1, length)
    assert metadata["shape"] == wanted[0]
    grid = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    assert grid == wanted[1]
    first, *_ = metadata["codecs"]
    assert (first["name"] == "sharding_indexed") is is_sharded
    if is_sharded:
      assert first["configuration"]["chunk_shape"] == wanted[2]


@pytest.mark.parametrize("options", [_KEEP, _STACK], ids=["kept", "stacked"])
def test_values_and_chunks(source, tmp_path, options):
  root, arrays, is_sharded = source
  step, item = _converted(root, tmp_path / "out", options)
  found = stores.read_item(item)
  assert set(stores.array_names(item).values()) == {"zarr3"}
  stacked = 0
  leaves = [leaf for leaf in step["leaves"] if leaf["item"] == "items"]
  for leaf in leaves:
    parts = [arrays[label] for label in leaf["from"]]
    if leaf["origin"] == "stacked":
      stacked += 1
      layers = [label.partition(".layers_")[2][0] for label in leaf["from"]]
      assert layers == ["0", "1", "2"]
      assert _same(found[leaf["name"]], np.stack(parts, 1)), leaf["name"]
    elif leaf["origin"] == "renamed":
      assert _same(found[leaf["name"]], parts[0]), leaf["name"]
  is_stacked = options is _STACK
  assert stacked == (3 * len(_SHAPES) if is_stacked else 0)
  assert found["step"] == 5
  named = {leaf["name"] for leaf in leaves if "shape" in leaf}
  assert named == found.keys()
  _check_metadata(item, is_sharded=is_sharded, is_stacked=is_stacked)
  assert verify(root, tmp_path / "out").is_ok


def test_no_value_is_written_anew(source, tmp_path):
  """Stacking moves references: the chunks stay in the files they were in."""
  root, _, _ = source
  step, item = _converted(root, tmp_path / "out", _STACK)
  old = {p.stat().st_ino for p in root.rglob("d/*") if p.is_file()}
  new = [p for p in item.rglob("d/*") if p.is_file()]
  linked = [p for p in new if p.stat().st_ino in old]
  assert len(new) == len(linked) + 1
  assert step["applied"]["num_bytes_copied"] == 0


def test_a_swap_of_layers_does_not_verify(source, tmp_path):
  root, _, _ = source
  _, item = _converted(root, tmp_path / "out", _STACK)
  name = "params.params.decoder.layers.mlp.wi_0.kernel"
  spec = {"driver": "zarr3", "kvstore": stores.kvstore(item, f"{name}/")}
  store = ts.open(spec, open=True).result()
  values = store.read().result()
  store.write(values[:, ::-1]).result()
  assert not verify(root, tmp_path / "out").is_ok
