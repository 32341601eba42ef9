"""MaxText and Tunix are importable together; their namespaces meet."""

import google.api_core
import google.protobuf
import jax
import maxtext
import tunix
from maxtext.trainers.pre_train import train


def test_imports():
  assert jax.default_backend() == "cpu"
  assert "pip_e2e" in maxtext.__file__
  assert "pip_trainers" in tunix.__file__
  assert "pip_trainers" in google.protobuf.__file__
  assert "pip_e2e" in google.api_core.__file__
  assert callable(train.main)
