"""Every Tunix fixture, converted, as all readers see it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.verify import verify
from tests.conformance import readers
from tests.conformance.nodes import dump_nodes
from tests.support import golden, stores

_STACK = Options(scan_layers="true", layer_pattern="flat")
_UNSCANNED = (
  "lora_sft_unscan",
  "qlora_int8_fullstate_unscan",
  "qlora_int8_sft_unscan",
  "rl_unscan",
  "sft_unscan",
  "sft_unscan_qwen3moe",
  "sft_unscan_sharded",
)
_SHARDED = ("sft_unscan_sharded",)
_CASES = [
  *((name, "kept") for name in golden.TUNIX),
  *((name, "stacked") for name in _UNSCANNED),
]
_DEVICES = 4


@pytest.fixture(scope="module", params=_CASES, ids="-".join)
def case(request, tmp_path_factory):
  """A converted checkpoint: source, target, and the report's steps."""
  name, mode = request.param
  source = golden.checkpoints(name)
  target = tmp_path_factory.mktemp(name) / "checkpoints"
  options = _STACK if mode == "stacked" else Options()
  report = convert(source, target, options).to_json()
  return name, source, target, report["steps"]


def _expected(step, source, recorded):
  """Returns what each array of the target must be, by name.

  The arrays of the source are those that were recorded when it was made.
  """
  arrays = {}
  for item in Path(step["source"]).iterdir():
    if item.is_dir():
      for name, values in stores.read_item(item).items():
        where = item.relative_to(source) / name
        assert stores.digest(values) == recorded[str(where)]
        arrays[f"{item.name}/{name}"] = values
  return {
    leaf["name"]: _value(leaf, [arrays[label] for label in leaf["from"]])
    for leaf in step["leaves"]
    if "shape" in leaf and leaf["item"] == "items"
  }


def _value(leaf, parts):
  if leaf["origin"] == "stacked":
    [axis] = leaf["layer_axes"]
    return np.stack(parts, axis)
  if leaf["origin"] == "derived":
    return np.asarray(leaf["value"], np.int32)
  return parts[0]


def _digests(case):
  """Yields each target step with the digests that it must have."""
  name, source, _, steps = case
  recorded = golden.digests(name)
  for step in steps:
    expected = _expected(step, source, recorded)
    yield (
      Path(step["target"]),
      {array: readers.digest(values) for array, values in expected.items()},
    )


def test_verified(case):
  _, source, target, steps = case
  report = verify(source, target)
  assert report.is_ok
  assert len(steps) == len(list(target.iterdir()))


def test_tensorstore(case):
  for step, expected in _digests(case):
    found = stores.read_item(step / "items")
    assert {name: readers.digest(found[name]) for name in found} == expected


def test_every_node_is_dumped(case):
  *_, steps = case
  for step in steps:
    num_keys = 0
    for manifest in Path(step["target"]).glob("*/manifest.ocdbt"):
      keys = [
        entry["key"]
        for _, node in dump_nodes(manifest.parent)
        if node["height"] == 0
        for entry in node["entries"]
      ]
      assert len(keys) == len(set(keys))
      num_keys += len(keys)
    assert num_keys == step["applied"]["num_keys"]


def test_restored_into_a_target(case):
  """Also what four devices saved: one device is enough (D4)."""
  for step, expected in _digests(case):
    for reader, found in readers.with_target(step).items():
      assert found == expected, reader


def test_restored_without_a_target(case):
  name, *_ = case
  for step, expected in _digests(case):
    found = (
      _on_devices(step) if name in _SHARDED else readers.without_target(step)
    )
    for reader, arrays in found.items():
      assert arrays == expected, reader


def _on_devices(step):
  """Returns what the readers find in a process with as many devices."""
  flags = f"--xla_force_host_platform_device_count={_DEVICES}"
  done = subprocess.run(
    [sys.executable, readers.__file__, step],
    env={
      **os.environ,
      "PYTHONPATH": os.pathsep.join(sys.path),
      "XLA_FLAGS": flags,
    },
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def test_containers_are_those_that_maxtext_writes(case):
  """The optimizer is a list whose stateless member is None, or a dict (C2)."""
  *_, steps = case
  for step in steps:
    target = Path(step["target"])
    tree = readers.orbax_v0_to(target, readers.abstract(target))
    if "opt_state" in tree:
      first, stateless, schedule = tree["opt_state"]
      assert isinstance(tree["opt_state"], list)
      assert sorted(first) == ["count", "mu", "nu"]
      assert stateless is None
      assert sorted(schedule) == ["count"]
      assert list(first["mu"]) == list(first["nu"]) == ["params"]
    assert list(tree["params"]) == ["params"]


@pytest.mark.parametrize(
  ("name", "options", "pretrained"),
  [
    ("sft_scan", Options(), "pretrain_scan"),
    ("dpo_scan", Options(), "pretrain_scan"),
    ("rl_scan", Options(), "pretrain_scan"),
    ("distill_scan_tmid", Options(), "pretrain_scan"),
    ("sft_unscan", Options(), "pretrain_unscan"),
    ("sft_unscan", _STACK, "pretrain_scan"),
    ("rl_unscan", _STACK, "pretrain_scan"),
    ("sft_unscan_gemma3", Options(), "pretrain_unscan_gemma3"),
  ],
)
def test_the_tree_of_a_pretraining_of_the_same_model(
  tmp_path, name, options, pretrained
):
  """Paths, containers, shapes and data types, apart from rng state (A6)."""
  report = convert(golden.checkpoints(name), tmp_path / "out", options)
  ours = readers.abstract(Path(report.steps[-1].target))
  theirs = readers.abstract(golden.checkpoints(pretrained) / "4")
  if "nnx_aux" not in ours:
    theirs.pop("nnx_aux", None)
  assert jax.tree.structure(ours) == jax.tree.structure(theirs)
  for (path, our), their in zip(
    jax.tree.leaves_with_path(ours), jax.tree.leaves(theirs), strict=True
  ):
    assert (our.shape, our.dtype) == (their.shape, their.dtype), path
