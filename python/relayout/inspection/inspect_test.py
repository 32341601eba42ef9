"""What inspection tells of the golden checkpoints."""

import json
import math
import shutil

import numpy as np
import pytest

from relayout.errors import OptionError
from relayout.inspection import inspect
from tests.support import golden, stores


def _json(path, **options):
  """Returns an inspection after a way through JSON."""
  value = inspect.to_json(inspect.inspect(path, **options))
  decoded = json.loads(json.dumps(value))
  assert decoded == value
  return decoded


def _leaves(found, item):
  return {leaf["name"]: leaf for leaf in found["items"][item]["leaves"]}


def test_quantized_weights_and_adapters():
  found = _json(golden.checkpoints("qlora_int8_fullstate_unscan"))
  facts = found["facts"]
  assert facts["layers"] == "unscanned"
  assert facts["optimizer"] == "adamw in chain"
  assert facts["LoRA"] == (
    "rank 4 on mlp.wi_0, mlp.wi_1, mlp.wo, self_attention.key, "
    "self_attention.out, self_attention.query, self_attention.value"
  )
  leaves = _leaves(found, "model_params")
  quantized = [
    name
    for name in leaves
    if name.endswith((".array.qvalue.value", ".array.scale.value"))
  ]
  # Seven kernels in each of four layers, each a value and a scale.
  assert facts["quantized leaves"] == str(len(quantized)) == "56"
  kernel = leaves["decoder.layers_0.mlp.wi_0.kernel.array.qvalue.value"]
  assert kernel["dtype"] == "int8"
  assert kernel["shape"] == kernel["chunk_shape"] == [64, 128]
  assert kernel["num_bytes"] == 64 * 128


@pytest.mark.parametrize(
  ("name", "rank"), [("lora_sft_unscan", 4), ("lora_sft_scan_r2_dtf32", 2)]
)
def test_adapters_alone(name, rank):
  facts = _json(golden.checkpoints(name))["facts"]
  assert facts["LoRA"].startswith(f"rank {rank} on mlp.wi_0, ")
  assert facts["LoRA"].endswith(", nothing else")
  assert "quantized leaves" not in facts


def test_adapters_of_several_ranks_are_not_recognised(tmp_path):
  arrays = {
    f"decoder.layers_{layer}.mlp.wo.kernel_lora_b.value": np.ones((rank, 6))
    for layer, rank in enumerate((2, 3))
  }
  stores.write_item(tmp_path / "4/model_params", arrays)
  found = _json(tmp_path)
  assert "several ranks" in found["facts"]["not recognised"]
  assert found["items"]["model_params"]["num_leaves"] == 2


def test_adapter_level_and_accumulation():
  found = _json(golden.checkpoints("dpo_scan"))
  assert found["kind"] == "run"
  assert found["layout"] == "tunix"
  assert [step["number"] for step in found["steps"]] == [2, 4]
  assert found["step"] == 4
  assert found["facts"] == {
    "layers": "scanned",
    "adapter level": "base",
    "optimizer": "adamw in chain in MultiSteps",
    "updates": "4 (gradient_step of MultiSteps: updates, not micro-steps)",
    "rng leaves": "12",
  }
  key = _leaves(found, "model_params")[
    "base.decoder.layers.self_attention.rngs.aqt.key.value"
  ]
  assert key["random_key_impl"] == "threefry2x32"


def test_unfinished_accumulation(tmp_path):
  weight = np.ones((2, 3), np.float32)
  stores.write_item(tmp_path / "8/model_params", {"decoder.w.value": weight})
  inner = "opt_state.inner_opt_state.0"
  stores.write_item(
    tmp_path / "8/optimizer_state",
    {
      "step.value": np.uint32(15),
      "opt_state.mini_step.value": np.int32(1),
      "opt_state.gradient_step.value": np.int32(7),
      "opt_state.acc_grads.decoder.w.value": weight,
      f"{inner}.count.value": np.int32(7),
      f"{inner}.mu.decoder.w.value": weight,
      f"{inner}.nu.decoder.w.value": weight,
    },
  )
  facts = _json(tmp_path)["facts"]
  assert facts["unfinished accumulation"] == "mini_step 1"
  assert facts["updates"].startswith("7 (")


def test_the_level_of_an_rl_run():
  found = _json(golden.checkpoints("rl_scan"))
  assert found["level"] == "actor"
  assert found["path"].endswith("/actor")
  facts = found["facts"]
  assert facts["adapter level"] == "base"
  assert facts["optimizer"] == "adamw in chain in inject_hyperparams"
  assert found["custom_metadata"] == {"global_step": 4, "role": "actor"}


def test_a_step_that_is_asked_for():
  found = _json(golden.checkpoints("rl_scan"), step=2)
  assert found["step"] == 2
  assert found["custom_metadata"]["global_step"] == 2
  with pytest.raises(OptionError, match=r"--step=3.*2, 4"):
    inspect.inspect(golden.checkpoints("rl_scan"), step=3)


def test_chunks_of_several_devices():
  found = _json(golden.checkpoints("pretrain_scan_sharded"))
  assert found["layout"] == "maxtext"
  assert found["facts"]["optimizer"] == "adamw"
  assert found["facts"]["updates"].startswith("5 ")
  assert found["custom_metadata"] == {"scan_layers": True}
  assert found["items"]["items"]["zarr"] == [3]
  leaves = _leaves(found, "items")
  key = leaves["nnx_aux.model.decoder.layers.self_attention.rngs.aqt.key"]
  assert key["shape"] == [4, 4]
  assert key["chunk_shape"] == [1, 4]
  assert key["inner_chunk_shape"] == [1, 4]
  assert key["random_key_impl"] == "unsafe_rbg"
  assert "inner_chunk_shape" not in leaves["step"]
  empty = [leaf for leaf in leaves.values() if "shape" not in leaf]
  assert empty == [{"name": "opt_state.1", "value_type": "None"}]


def test_inner_chunks_differ_from_zarr_shards(tmp_path):
  name = "decoder.w.value"
  stores.write_item(
    tmp_path / "4/model_params",
    {name: np.ones((8, 12), np.float32)},
    zarr_format=3,
    chunks={name: (4, 6)},
    inner_chunks={name: (2, 3)},
  )
  leaf = _leaves(_json(tmp_path), "model_params")[name]
  assert leaf["chunk_shape"] == [4, 6]
  assert leaf["inner_chunk_shape"] == [2, 3]


@pytest.mark.parametrize(
  ("name", "zarr"),
  [
    ("sft_unscan_sharded", 2),
    ("sft_scan_tgit", 3),
    ("qlora_int8_fullstate_unscan", 2),
    ("pretrain_scan_sharded", 3),
    ("pretrain_unscan", 3),
  ],
)
def test_totals_are_sums(name, zarr):
  path = golden.checkpoints(name)
  found = _json(path)
  for item, facts in found["items"].items():
    assert facts["store"] == "ocdbt"
    assert facts["zarr"] == [zarr]
    rows = facts["leaves"]
    assert facts["num_leaves"] == len(rows)
    arrays = [row for row in rows if "shape" in row]
    assert facts["num_bytes"] == sum(row["num_bytes"] for row in arrays)
    stored = sum(row["num_stored_bytes"] for row in arrays)
    assert facts["num_stored_bytes"] == stored > 0
    directory = path / str(found["step"]) / item
    values = stores.read_item(directory)
    assert {row["name"] for row in arrays} == values.keys()
    assert facts["num_bytes"] == sum(value.nbytes for value in values.values())
    assert facts["num_chunks"] == sum(
      math.prod(
        -(-length // chunk)
        for length, chunk in zip(row["shape"], row["chunk_shape"], strict=True)
      )
      for row in arrays
    )


def test_an_item_of_plain_directories(tmp_path):
  values = np.arange(6, dtype=np.int16)
  array = tmp_path / "4/model_params/decoder.w.value"
  array.mkdir(parents=True)
  metadata = {
    "zarr_format": 2,
    "shape": [6],
    "chunks": [4],
    "dtype": "<i2",
    "compressor": None,
    "fill_value": None,
    "filters": None,
    "order": "C",
  }
  (array / ".zarray").write_text(json.dumps(metadata))
  (array / "0").write_bytes(values[:4].tobytes())
  (array / "1").write_bytes(values[4:].tobytes() + bytes(4))
  found = _json(tmp_path)["items"]["model_params"]
  assert found["store"] == "zarr"
  assert found["zarr"] == [2]
  assert found["num_chunks"] == 2
  assert found["num_bytes"] == 12
  assert found["num_stored_bytes"] == 16


@pytest.mark.parametrize("level", ["", "4", "4/model_params"])
def test_missing_side_files_are_noted(tmp_path, level):
  source = golden.copy_checkpoints("sft_unscan", tmp_path)
  whole = _json(source / level)
  assert whole["notes"] == []
  assert whole["items"]["model_params"]["missing_side_files"] == []
  item = source / "4/model_params"
  (item / "_METADATA").unlink()
  (item / "_sharding").unlink()
  shutil.rmtree(item / "array_metadatas")
  found = _json(source / level)
  missing = ["_METADATA", "_sharding", "array_metadatas"]
  assert found["items"]["model_params"]["missing_side_files"] == missing
  for name in missing:
    assert any(name in note for note in found["notes"]), name
  if "optimizer_state" in found["items"]:
    assert found["items"]["optimizer_state"]["missing_side_files"] == []
  names = {leaf["name"] for leaf in whole["items"]["model_params"]["leaves"]}
  assert _leaves(found, "model_params").keys() == names
