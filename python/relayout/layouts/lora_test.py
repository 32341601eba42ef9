"""What the names and shapes of leaves tell of adapters."""

import numpy as np
import pytest

from relayout.errors import LayoutError
from relayout.layouts import lora, tunix
from relayout.metadata.item import open_item
from tests.support import golden, stores

_ALL = (
  "mlp.wi_0",
  "mlp.wi_1",
  "mlp.wo",
  "self_attention.key",
  "self_attention.out",
  "self_attention.query",
  "self_attention.value",
)


def _golden(name):
  [step] = golden.checkpoints(name).iterdir()
  return tunix.read_state(open_item(step / tunix.MODEL_ITEM), None)


def _state(tmp_path, shapes):
  values = {
    f"{name}.value": np.ones(shape, np.float32)
    for name, shape in shapes.items()
  }
  stores.write_item(tmp_path / "model_params", values)
  return tunix.read_state(open_item(tmp_path / "model_params"), None)


@pytest.mark.parametrize(
  ("name", "rank", "is_adapter_only"),
  [
    ("lora_sft_unscan", 4, True),
    ("lora_sft_scan_r2_dtf32", 2, True),
    ("qlora_int8_sft_unscan", 4, True),
    ("qlora_int8_fullstate_unscan", 4, False),
  ],
)
def test_golden_checkpoints(name, rank, is_adapter_only):
  found = lora.describe(_golden(name))
  assert found == lora.Lora(rank, _ALL, is_adapter_only)


@pytest.mark.parametrize("name", ["sft_unscan", "sft_scan"])
def test_no_adapters(name):
  step = golden.checkpoints(name) / "4"
  state = tunix.read_state(open_item(step / tunix.MODEL_ITEM), None)
  assert lora.describe(state) is None


@pytest.mark.parametrize("layer", ["layers_0", "layers_12", "layers.3"])
def test_targets_have_no_layer_numbers(tmp_path, layer):
  module = f"decoder.{layer}.self_attention.query"
  shapes = {
    f"{module}.kernel_lora_a": (8, 2),
    f"{module}.kernel_lora_b": (2, 6),
    f"{module}.kernel": (8, 6),
    f"decoder.{layer}.mlp.wo.kernel": (8, 6),
  }
  found = lora.describe(_state(tmp_path, shapes))
  assert found == lora.Lora(2, ("self_attention.query",), False)


@pytest.mark.parametrize("layer", ["layers_0", "dense_layers_7", "layers.3"])
def test_layers_share_the_target_of_a_module_of_their_own(tmp_path, layer):
  other = layer[:-1] + "9"
  shapes = {f"decoder.{x}.wq.kernel_lora_b": (2, 6) for x in (layer, other)}
  [target] = lora.describe(_state(tmp_path, shapes)).targets
  assert target == "wq"


@pytest.mark.parametrize(
  ("module", "expected"),
  [
    ("decoder.logits_dense", "decoder.logits_dense"),
    ("token_embedder", "token_embedder"),
    ("decoder.layers.mlp.experts.1.wi", "mlp.experts.1.wi"),
    ("decoder.scanned_blocks.local_layers.mlp.wi", "mlp.wi"),
  ],
)
def test_targets_are_named_below_their_layer(tmp_path, module, expected):
  shapes = {f"{module}.kernel_lora_b": (2, 6)}
  assert lora.describe(_state(tmp_path, shapes)).targets == (expected,)


@pytest.mark.parametrize(
  ("factor", "shape", "rank"),
  [
    ("a", (64, 8), 8),
    ("b", (8, 64), 8),
    ("a", (64, 4, 8), 8),  # Scanned: four layers.
    ("b", (8, 4, 64), 8),
  ],
)
def test_rank_of_one_factor(tmp_path, factor, shape, rank):
  name = f"decoder.layers.mlp.wo.kernel_lora_{factor}"
  found = lora.describe(_state(tmp_path, {name: shape}))
  assert found.rank == rank


def test_several_ranks_are_refused_by_name(tmp_path):
  shapes = {
    "decoder.layers_0.mlp.wo.kernel_lora_a": (8, 2),
    "decoder.layers_0.mlp.wo.kernel_lora_b": (2, 6),
    "decoder.layers_1.mlp.wo.kernel_lora_a": (8, 3),
    "decoder.layers_1.mlp.wo.kernel_lora_b": (3, 6),
  }
  with pytest.raises(LayoutError) as caught:
    lora.describe(_state(tmp_path, shapes))
  message = str(caught.value)
  assert "several ranks" in message
  assert "2 (model_params/decoder.layers_0.mlp.wo.kernel_lora_a" in message
  assert "3 (model_params/decoder.layers_1.mlp.wo.kernel_lora_a" in message


def test_factors_of_one_adapter_must_agree(tmp_path):
  shapes = {
    "decoder.layers.mlp.wo.kernel_lora_a": (8, 2),
    "decoder.layers.mlp.wo.kernel_lora_b": (4, 6),
  }
  with pytest.raises(LayoutError, match="several ranks"):
    lora.describe(_state(tmp_path, shapes))


def test_a_scalar_is_no_factor(tmp_path):
  state = _state(tmp_path, {"decoder.layers.mlp.wo.kernel_lora_a": ()})
  with pytest.raises(LayoutError, match=r"wo\.kernel_lora_a.*scalar"):
    lora.describe(state)


@pytest.mark.parametrize(
  ("path", "is_quantized"),
  [
    ("decoder.mlp.wo.kernel.array.qvalue", True),
    ("decoder.mlp.wo.kernel.array.scale", True),
    ("decoder.mlp.wo.kernel.array.zero_point", True),
    ("decoder.norm.scale", False),
    ("decoder.mlp.wo.kernel.qvalue", False),
    ("decoder.mlp.array.kernel", False),
    ("qvalue", False),
  ],
)
def test_quantized_leaves(path, is_quantized):
  assert lora.is_quantized(tuple(path.split("."))) is is_quantized
