"""Rng state of unscanned models, kept or left out."""

import json
from pathlib import Path

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")
_LAYERS = 2
_STREAM = "self_attention.rngs.aqt"


def _write(root: Path, num_words: int, impl: str | None = None) -> Path:
  """Writes a step of AdamW with an rng stream a layer; returns its run.

  Args:
    root: Where the run goes.
    num_words: Width of a key.
    impl: What `array_metadatas` records of the keys; None: no such file.
  """
  weights, model, optimizer = {}, {}, {}
  for layer in range(_LAYERS):
    prefix = f"decoder.layers_{layer}"
    weights[f"{prefix}.mlp.wi.value"] = np.ones((2, 3), np.float32)
    words = np.arange(num_words, dtype=np.uint32) + 100 * layer
    model[f"{prefix}.{_STREAM}.key.value"] = words
    model[f"{prefix}.{_STREAM}.count.value"] = np.uint32(7 + layer)
  for name, values in weights.items():
    optimizer[f"opt_state.0.mu.{name}"] = values
    optimizer[f"opt_state.0.nu.{name}"] = values
  optimizer["opt_state.0.count.value"] = np.int32(4)
  optimizer["step.value"] = np.uint32(4)
  stores.write_item(root / "4/model_params", weights | model)
  stores.write_item(root / "4/optimizer_state", optimizer)
  if impl:
    _record(root / "4/model_params", weights | model, impl)
  return root


def _record(item: Path, arrays: dict, impl: str) -> None:
  entries = []
  for name, values in arrays.items():
    shape = list(np.shape(values))
    kind = {"random_key_impl": impl} if name.endswith(".key.value") else None
    entry = {
      "param_name": name,
      "write_shape": shape,
      "chunk_shape": shape,
      "ext_metadata": kind,
    }
    entries.append({"array_metadata": entry})
  (item / "array_metadatas").mkdir()
  text = json.dumps({"array_metadatas": entries})
  (item / "array_metadatas/process_0").write_text(text)


def _converted(source: Path, out: Path, options: Options):
  """Returns the step's report, its rng arrays and those that it left out."""
  [step] = convert(source, out, options).to_json()["steps"]
  arrays = stores.read_item(Path(step["target"], "items"))
  rng = {name: value for name, value in arrays.items() if "rngs" in name}
  dropped = {
    label: reason
    for reason, labels in (step["dropped"] | step["set_aside"]).items()
    for label in labels
    if "rngs" in label
  }
  return step, rng, dropped


def _labels() -> set[str]:
  return {
    f"model_params/decoder.layers_{layer}.{_STREAM}.{leaf}.value"
    for layer in range(_LAYERS)
    for leaf in ("key", "count")
  }


@pytest.mark.parametrize("impl", [None, "unsafe_rbg"])
def test_stacking_leaves_it_out_with_the_reason(tmp_path, impl):
  source = _write(tmp_path / "in", 4, impl)
  step, rng, dropped = _converted(source, tmp_path / "out", _FLAT)
  assert any(leaf["origin"] == "stacked" for leaf in step["leaves"])
  assert rng == {}
  assert dropped.keys() == _labels()
  [reason] = set(dropped.values())
  assert "unscanned has no counterpart in one that is scanned" in reason
  assert "fresh rng state" in reason


@pytest.mark.parametrize("impl", [None, "unsafe_rbg"])
def test_keeping_the_layers_keeps_it(tmp_path, impl):
  source = _write(tmp_path / "in", 4, impl)
  _, rng, dropped = _converted(source, tmp_path / "out", _KEEP)
  assert dropped == {}
  assert len(rng) == 2 * _LAYERS
  for layer in range(_LAYERS):
    prefix = f"nnx_aux.model.decoder.layers_{layer}.{_STREAM}"
    words = np.arange(4, dtype=np.uint32) + 100 * layer
    np.testing.assert_array_equal(rng[f"{prefix}.key"], words)
    assert rng[f"{prefix}.key"].dtype == np.uint32
    assert rng[f"{prefix}.count"] == 7 + layer


@pytest.mark.parametrize("options", [_KEEP, _FLAT], ids=["kept", "stacked"])
@pytest.mark.parametrize(
  ("num_words", "impl", "named"),
  [
    (2, None, "threefry2x32"),
    (2, "threefry2x32", "threefry2x32"),
    (4, "rbg", "rbg"),  # As wide as unsafe_rbg: what is recorded decides.
    (3, None, "unknown"),
  ],
)
def test_other_kinds_are_left_out(tmp_path, options, num_words, impl, named):
  source = _write(tmp_path / "in", num_words, impl)
  _, rng, dropped = _converted(source, tmp_path / "out", options)
  assert rng == {}
  assert dropped.keys() == _labels()
  [reason] = set(dropped.values())
  assert reason.startswith(f"rng keys are {named}, ")
  assert "unsafe_rbg" in reason


def test_weights_alone_have_none(tmp_path):
  source = _write(tmp_path / "in", 4)
  options = Options(params_only=True)
  _, rng, dropped = _converted(source, tmp_path / "out", options)
  assert rng == {}
  assert dropped == dict.fromkeys(_labels(), "weights only (--params_only)")
