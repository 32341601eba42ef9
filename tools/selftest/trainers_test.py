"""The trainers' packages are importable, each from one repository."""

import flax
import google.protobuf
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import qwix
import tunix


def test_imports():
  assert jax.default_backend() == "cpu"
  for module in (flax, optax, qwix, tunix, google.protobuf):
    assert "pip_trainers" in module.__file__
  assert "pip_core" in np.__file__


def test_orbax_round_trip(tmp_path):
  tree = {"a": jnp.arange(4.0)}
  with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(tmp_path / "step", tree)
    checkpointer.wait_until_finished()
    restored = checkpointer.restore(tmp_path / "step", tree)
  assert restored["a"].tolist() == tree["a"].tolist()
