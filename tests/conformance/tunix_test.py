"""What the released Tunix saves of live models is, converted, the same."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.errors import LayoutError
from relayout.verify import verify
from tests.conformance import readers, tunix_run
from tests.conformance.tunix_run import SCHEDULE, Adapter, Model
from tests.support import stores

_RATE = 1e-2
_KEEP = Options()
_STACK = Options(scan_layers="true", layer_pattern="flat")


def _chain(rate):
  return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate))


def _inject(make, rate=SCHEDULE):
  """Puts `make` into inject_hyperparams, as RL and distillation do."""
  return optax.inject_hyperparams(lambda learning_rate: make(learning_rate))(
    learning_rate=rate
  )


def _accumulate(inner, every, **fields):
  return optax.MultiSteps(inner, every, **fields).gradient_transformation()


def _is_matrix(tree):
  return jax.tree.map(lambda x: x.ndim == 2, tree)


def _skipping(inner, every):
  return _accumulate(inner, every, should_skip_update_fn=optax.skip_not_finite)


_OPTIMIZERS = {
  "adamw": lambda: optax.adamw(_RATE),
  "adamw with a schedule": lambda: optax.adamw(SCHEDULE),
  "adamw with a mask": lambda: optax.adamw(SCHEDULE, mask=_is_matrix),
  "adamw of float32 moments": lambda: optax.adamw(
    SCHEDULE, mu_dtype=jnp.float32
  ),
  "clipping": lambda: _chain(_RATE),
  "clipping with a schedule": lambda: _chain(SCHEDULE),
  "clipping twice": lambda: optax.chain(optax.clip(1.0), _chain(SCHEDULE)),
  "clipping after": lambda: optax.chain(optax.adamw(SCHEDULE), optax.clip(1.0)),
  "MultiSteps(1)": lambda: _accumulate(_chain(SCHEDULE), 1),
  "MultiSteps(2)": lambda: _accumulate(_chain(SCHEDULE), 2),
  "MultiSteps(2) that skips": lambda: _skipping(_chain(SCHEDULE), 2),
  "MultiSteps without a schedule": lambda: _accumulate(optax.adamw(_RATE), 2),
  "inject": lambda: _inject(_chain),
  "inject without a schedule": lambda: _inject(_chain, _RATE),
  "inject adamw": lambda: _inject(optax.adamw),
  "MultiSteps(inject)": lambda: _accumulate(_inject(_chain), 2),
  "MultiSteps(inject) that skips": lambda: _skipping(_inject(_chain), 2),
  "inject(MultiSteps)": lambda: _inject(lambda r: _accumulate(_chain(r), 2)),
  "inject(MultiSteps(adamw))": lambda: _inject(
    lambda r: _accumulate(optax.adamw(r), 2)
  ),
  "chain(MultiSteps)": lambda: optax.chain(
    optax.clip(1.0), _accumulate(optax.adamw(SCHEDULE), 2)
  ),
}


def _strip(path, *, adapter):
  return path.removeprefix("base.") if adapter else path


def _expected(model, optimizer, *, updates, adapter=False):
  """Returns what MaxText's layout must hold, from the live objects alone."""
  weights = tunix_run.flat(nnx.state(model, nnx.Param))
  result = {
    f"params.params.{_strip(path, adapter=adapter)}": values
    for path, values in weights.items()
  }
  state = tunix_run.pure(optimizer.opt_state)
  adam = tunix_run.find(state, optax.ScaleByAdamState)
  for slot in ("mu", "nu"):
    for path, values in tunix_run.flat(getattr(adam, slot)).items():
      below = _strip(path, adapter=adapter)
      result[f"opt_state.0.{slot}.params.{below}"] = values
  schedule = tunix_run.find(state, optax.ScaleByScheduleState)
  injected = tunix_run.find(state, optax.InjectStatefulHyperparamsState)
  counts = [x.count for x in (schedule, injected, adam) if x is not None]
  return result | {
    "opt_state.0.count": adam.count,
    "opt_state.2.count": counts[0],
    "step": np.int32(updates),
  }


def _check(root, tmp_path, expected, options=_KEEP):
  """Converts, verifies, and compares what the readers find, to the byte."""
  report = convert(root, tmp_path / "out", options)
  [step] = report.to_json()["steps"]
  assert verify(root, tmp_path / "out").is_ok
  digests = {name: readers.digest(x) for name, x in expected.items()}
  target = next(iter((tmp_path / "out").iterdir()))
  tree = readers.orbax_v0(target)
  assert readers.digests(tree) == digests
  assert readers.digests(readers.orbax_v1(target)) == digests
  return step, tree


@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_optimizers(tmp_path, name):
  """C1: AdamW in all the wrappings that trainers put around it."""
  model = Model()
  every = 2 if "MultiSteps" in name and name != "MultiSteps(1)" else 1
  optimizer = tunix_run.train(model, _OPTIMIZERS[name](), 3 * every)
  root = tunix_run.save(tmp_path / "in", 3 * every, model, optimizer)
  _, tree = _check(root, tmp_path, _expected(model, optimizer, updates=3))
  # C2: a list, so that a trainer's branches find the structure they expect.
  assert isinstance(tree["opt_state"], list)
  assert tree["opt_state"][1] is None
  assert (tmp_path / "out" / "2" / "items").is_dir()


@pytest.mark.parametrize("name", ["MultiSteps(2)", "inject(MultiSteps)"])
def test_unfinished_accumulation(tmp_path, name):
  """Three micro-steps of two an update: one gradient would be lost."""
  model = Model()
  optimizer = tunix_run.train(model, _OPTIMIZERS[name](), 3)
  root = tunix_run.save(tmp_path / "in", 3, model, optimizer)
  with pytest.raises(LayoutError, match="mini_step is 1"):
    convert(root, tmp_path / "out", Options())
  assert not (tmp_path / "out").exists()
  expected = _expected(model, optimizer, updates=1)
  step, _ = _check(root, tmp_path, expected, Options(force=True))
  assert any("lost" in reason for reason in step["set_aside"])


@pytest.mark.parametrize(
  "name", ["clipping with a schedule", "MultiSteps(2)", "MultiSteps(inject)"]
)
def test_an_adapter_and_a_real_module_called_base(tmp_path, name):
  """A4: the wrapper's level goes, the module's stays."""
  model = Adapter(Model())
  optimizer = tunix_run.train(model, _OPTIMIZERS[name](), 4)
  root = tunix_run.save(tmp_path / "in", 4, model, optimizer)
  updates = 2 if "Multi" in name else 4
  expected = _expected(model, optimizer, updates=updates, adapter=True)
  assert "params.params.decoder.layers_0.base.kernel" in expected
  assert (
    "params.params.decoder.layers_0.self_attention.value.kernel" in expected
  )
  _check(root, tmp_path, expected)


@pytest.mark.parametrize("in_list", [False, True])
def test_layers_by_name_or_in_a_list_are_stacked(tmp_path, in_list):
  """A14, D2: `layers_0` and `layers.0` become one stack."""
  model = Model(in_list=in_list)
  optimizer = tunix_run.train(model, _chain(SCHEDULE), 3)
  root = tunix_run.save(tmp_path / "in", 3, model, optimizer)
  layer = "layers.{}" if in_list else "layers_{}"
  expected = {}
  for name, values in _expected(model, optimizer, updates=3).items():
    first, second = (f".{layer.format(i)}." for i in (0, 1))
    if second in name:
      continue
    if first in name:
      others = _expected(model, optimizer, updates=3)
      parts = [values, others[name.replace(first, second)]]
      name = name.replace(first, ".layers.")
      values = np.stack(parts, 1)
    expected[name] = values
  _check(root, tmp_path, expected, _STACK)


def test_a_list_of_layers_is_kept(tmp_path):
  model = Model(in_list=True)
  optimizer = tunix_run.train(model, _chain(SCHEDULE), 3)
  root = tunix_run.save(tmp_path / "in", 3, model, optimizer)
  _check(root, tmp_path, _expected(model, optimizer, updates=3))


@pytest.mark.parametrize(
  "name", ["clipping", "adamw of float32 moments", "inject"]
)
def test_bfloat16_weights(tmp_path, name):
  """C7: every data type is what it was."""
  model = Model(jnp.bfloat16)
  optimizer = tunix_run.train(model, _OPTIMIZERS[name](), 3)
  root = tunix_run.save(tmp_path / "in", 3, model, optimizer)
  expected = _expected(model, optimizer, updates=3)
  assert expected["params.params.token_embedder.kernel"].dtype == jnp.bfloat16
  _check(root, tmp_path, expected)


def test_weights_alone(tmp_path):
  model = Model()
  root = tunix_run.save(tmp_path / "in", 3, model, None)
  weights = tunix_run.flat(nnx.state(model, nnx.Param))
  expected = {f"params.params.{path}": x for path, x in weights.items()}
  _check(root, tmp_path, expected)


_OTHERS = {
  "sgd": lambda: optax.sgd(_RATE),
  "sgd with momentum": lambda: optax.sgd(_RATE, momentum=0.9),
  "sgd with a schedule": lambda: optax.sgd(SCHEDULE),
  "adam with a schedule": lambda: optax.adam(SCHEDULE),
  "lion": lambda: optax.lion(_RATE),
  "adafactor": lambda: optax.adafactor(_RATE),
  "lamb": lambda: optax.lamb(SCHEDULE),
  "rmsprop": lambda: optax.rmsprop(_RATE),
  "two adams": lambda: optax.chain(
    optax.scale_by_adam(), optax.scale_by_adam()
  ),
  "a masked adamw": lambda: optax.masked(optax.adamw(SCHEDULE), _is_matrix),
  "MultiSteps(MultiSteps)": lambda: _accumulate(
    _accumulate(optax.adamw(SCHEDULE), 2), 1
  ),
  "inject(inject)": lambda: _inject(lambda r: _inject(optax.adamw, r), _RATE),
  "adamw and an average": lambda: optax.chain(
    optax.adamw(SCHEDULE), optax.ema(0.9)
  ),
}


@pytest.mark.parametrize("name", _OTHERS)
def test_other_optimizers_are_refused_with_advice(tmp_path, name):
  model = Model()
  optimizer = tunix_run.train(model, _OTHERS[name](), 2)
  root = tunix_run.save(tmp_path / "in", 2, model, optimizer)
  with pytest.raises(LayoutError, match="--params_only"):
    convert(root, tmp_path / "out", Options())
  assert not (tmp_path / "out").exists()
  weights = tunix_run.flat(nnx.state(model, nnx.Param))
  expected = {f"params.params.{path}": x for path, x in weights.items()}
  _check(root, tmp_path, expected, Options(params_only=True))


class _Noisy(nnx.Module):
  """A model with dropout, whose rng state is typed keys and counts."""

  def __init__(self, impl):
    self.decoder = nnx.Dict(norm=tunix_run.Kernel(3, seed=1))
    keys = [jax.random.key(seed, impl=impl) for seed in range(2)]
    self.rngs = nnx.Rngs(params=keys[0], dropout=keys[1])
    self.dropout = nnx.Dropout(0.5, rngs=self.rngs)


@pytest.mark.parametrize("impl", ["threefry2x32", "unsafe_rbg"])
def test_typed_rng_keys(tmp_path, impl):
  """D3: kept with their kind where MaxText can read it, else left out."""
  model = _Noisy(impl)
  optimizer = tunix_run.train(model, _chain(SCHEDULE), 2)
  root = tunix_run.save(tmp_path / "in", 2, model, optimizer)
  expected = _expected(model, optimizer, updates=2)
  if impl == "unsafe_rbg":
    state = tunix_run.flat(nnx.state(model, nnx.RngState))
    assert state
    expected |= {f"nnx_aux.model.{path}": x for path, x in state.items()}
  step, tree = _check(root, tmp_path, expected)
  if impl == "unsafe_rbg":
    key = tree["nnx_aux"]["model"]["rngs"]["params"]["key"]
    assert jax.random.key_impl(key) == impl
  else:
    assert any("threefry" in reason for reason in step["set_aside"])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zero_size_leaves(tmp_path, zarr_format):
  """D5: metadata only, and no chunk is missed.

  This Orbax refuses to save such leaves, others and other writers do not.
  """
  shapes = {"norm": (3,), "none": (0,), "rank": (4, 0)}
  arrays = {
    f"decoder.{name}.value": np.ones(shape, np.float32)
    for name, shape in shapes.items()
  }
  source = tmp_path / "in" / "2"
  stores.write_item(source / "model_params", arrays, zarr_format=zarr_format)
  report = convert(source, tmp_path / "out", Options())
  assert verify(source, tmp_path / "out").is_ok
  found = stores.read_item(tmp_path / "out" / "1" / "items")
  assert {name: x.shape for name, x in found.items()} == {
    f"params.params.decoder.{name}": shape for name, shape in shapes.items()
  }
  assert len(report.steps) == 1
