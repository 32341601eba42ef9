"""Arrays that live on a TPU survive an Orbax checkpoint, byte for byte."""

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from jax.sharding import NamedSharding, PartitionSpec


def test_default_backend_is_tpu():
  assert jax.default_backend() == "tpu"
  assert all(device.platform == "tpu" for device in jax.devices())


@pytest.fixture
def sharding():
  mesh = jax.make_mesh((len(jax.devices()),), ("data",))
  return NamedSharding(mesh, PartitionSpec("data"))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.int32])
def test_orbax_round_trip(tmp_path, sharding, dtype):
  num_rows = 4 * len(jax.devices())
  values = np.arange(num_rows * 128).reshape(num_rows, 128).astype(dtype)
  tree = {
    "layers": {"kernel": jax.device_put(values, sharding)},
    "step": jnp.asarray(7),
  }
  target = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
    tree,
  )

  with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(tmp_path / "step", tree)
    checkpointer.wait_until_finished()
    restored = checkpointer.restore(tmp_path / "step", target)

  kernel = restored["layers"]["kernel"]
  assert kernel.dtype == dtype
  assert kernel.sharding == sharding
  assert np.asarray(kernel).tobytes() == values.tobytes()
  assert int(restored["step"]) == 7


def test_computation_runs_on_the_chip(sharding):
  num_rows = 8 * len(jax.devices())
  x = jax.device_put(jnp.ones((num_rows, 128), jnp.bfloat16), sharding)
  y = jax.jit(lambda a: (a * 2).sum(axis=1))(x)
  assert {device.platform for device in y.devices()} == {"tpu"}
  assert np.asarray(y, np.float32).tolist() == [256.0] * num_rows
