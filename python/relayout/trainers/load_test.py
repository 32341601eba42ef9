"""Any layout is read straight into a live model, at its shardings."""

import os
import subprocess
import sys
import types

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from tunix.sft import checkpoint_manager

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import LayoutError, OptionError
from relayout.trainers.load import load_params_from_path, load_state_from_path
from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager
from tests.support.small_models import (
  build,
  differences,
  shardings,
  spread,
  train,
  values,
)

SYNC = ocp.CheckpointManagerOptions(enable_async_checkpointing=False)


@pytest.fixture(scope="module", params=["tunix", "maxtext"])
def stored(request, tmp_path_factory):
  """A run of two updates: its directory, and each kind's model and state."""
  root = tmp_path_factory.mktemp("run")
  found = {}
  for scan in (True, False):
    directory = root / f"scan_{scan}"
    model, opt = build(0, "multi_steps", adapter=True, scan=scan)
    train(model, opt, 2)
    manager = (
      MaxTextLayoutCheckpointManager(str(directory), SYNC)
      if request.param == "maxtext"
      else checkpoint_manager.CheckpointManager(str(directory), SYNC)
    )
    manager.save(2, model, opt)
    manager.close()
    found[scan] = types.SimpleNamespace(
      path=directory, model=values(model), optimizer=values(opt)
    )
  return found


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_loads_at_the_shardings_of_the_model(stored, devices):
  run = stored[True]
  model, opt = build(1, "clip", scan=True)
  spread(model, devices)
  spread(opt, devices)
  before = shardings(model) | shardings(opt)
  loaded = load_state_from_path(run.path, model, opt)
  assert loaded.updates == 2
  assert loaded.path == run.path / "2"
  assert shardings(model) | shardings(opt) == before
  want = {name.removeprefix("base."): v for name, v in run.model.items()}
  # Rng state of a trainer with other names is not taken over.
  got = values(model)
  assert {n for n in differences(want, got) if "rngs" not in n} == set()
  for slot in ("mu", "nu"):
    name = "opt_state.inner_opt_state.1.0"
    np.testing.assert_array_equal(
      values(opt)[f"opt_state.1.0.{slot}.decoder.layers.dense.kernel"],
      run.optimizer[f"{name}.{slot}.base.decoder.layers.dense.kernel"],
    )


@pytest.mark.parametrize("scan", [True, False])
def test_stacks_and_unstacks_sharded_arrays(stored, scan):
  run = stored[not scan]
  model, opt = build(1, "multi_steps", adapter=True, scan=scan)
  spread(model, 2)
  load_state_from_path(run.path, model, opt, layer_pattern="flat")
  got = values(model)
  stack, layers = (got, run.model) if scan else (run.model, got)
  for i in range(3):
    for leaf in ("kernel", "bias"):
      np.testing.assert_array_equal(
        stack[f"base.decoder.layers.dense.{leaf}"].take(i, axis=1),
        layers[f"base.decoder.layers_{i}.dense.{leaf}"],
      )


def test_loads_weights_from_run_step_and_item(stored):
  run = stored[False]
  items = [p for p in (run.path / "2").iterdir() if p.is_dir()]
  [item] = [p for p in items if p.name in ("items", "model_params")]
  for path in (run.path, run.path / "2", item):
    model, _ = build(1)
    load_params_from_path(path, model)
    for i in range(3):
      name = f"decoder.layers_{i}.dense.kernel"
      np.testing.assert_array_equal(
        values(model)[name], run.model[f"base.{name}"]
      )


def test_agrees_with_a_conversion(stored, tmp_path):
  run = stored[False]
  options = Options(scan_layers="true", layer_pattern="flat")
  convert(run.path, tmp_path / "converted", options)
  [number] = (tmp_path / "converted").iterdir()
  direct, direct_opt = build(1, "clip", scan=True)
  load_state_from_path(run.path, direct, direct_opt, layer_pattern="flat")
  converted, converted_opt = build(2, "clip", scan=True)
  load_state_from_path(number, converted, converted_opt)
  same = differences(values(direct), values(converted))
  assert {name for name in same if "rngs" not in name} == set()
  assert not differences(values(direct_opt), values(converted_opt))


def test_layers_without_a_pattern_are_refused(stored):
  model, opt = build(1, scan=True)
  before = values(model)
  with pytest.raises(OptionError, match="layer_pattern"):
    load_state_from_path(stored[False].path, model, opt)
  assert not differences(before, values(model))


def test_a_model_that_differs_is_refused_with_every_leaf(stored):
  model, _ = build(1, "clip", scan=True)
  model.decoder.layers.dense.bias = nnx.Param(jax.numpy.zeros((5, 3)))
  model.decoder.extra = nnx.Param(jax.numpy.zeros((2,)))
  before = values(model)
  with pytest.raises(LayoutError) as error:
    load_params_from_path(stored[True].path, model)
  message = str(error.value)
  assert "decoder.layers.dense.bias.value: stored with shape [4, 3]" in message
  assert "the model has [5, 3]" in message
  assert "decoder.extra.value: the model has float32 [2]; not stored" in message
  assert "another model" in message
  assert not differences(before, values(model))


def test_loads_the_state_of_an_optimizer_that_maxtext_has_not(tmp_path):
  model, opt = build(0, "sgd_momentum")
  train(model, opt, 2)
  manager = MaxTextLayoutCheckpointManager(str(tmp_path), SYNC)
  manager.save(2, model, opt)
  manager.close()
  other, other_opt = build(1, "sgd_momentum")
  load_state_from_path(tmp_path, other, other_opt)
  assert not differences(values(opt), values(other_opt))


def test_weights_alone_are_no_state(tmp_path):
  model, opt = build(0)
  manager = MaxTextLayoutCheckpointManager(str(tmp_path), SYNC)
  manager.save(2, model)
  manager.close()
  before = values(model)
  with pytest.raises(LayoutError, match="holds no optimizer state"):
    load_state_from_path(tmp_path, model, opt)
  assert not differences(before, values(model))


def test_an_unknown_optimizer_state_is_refused(stored):
  model, _ = build(1, scan=True)
  opt = nnx.Optimizer(model, optax.adafactor(0.1), wrt=nnx.Param)
  with pytest.raises(LayoutError):
    load_state_from_path(stored[True].path, model, opt)


def test_needs_no_tunix():
  code = (
    "import sys; sys.modules['tunix'] = None; "
    "import relayout.trainers.load, relayout.trainers.live.tree"
  )
  done = subprocess.run(
    [sys.executable, "-c", code],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    check=False,
  )
  assert done.returncode == 0
