import tempfile
from pathlib import Path

import pytest

from tests.corrupt.runner import Runner


@pytest.fixture(scope="session")
def runner():
  with Runner() as runner:
    yield runner


@pytest.fixture
def memory():
  """A directory on a file system of its own."""
  with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
    yield Path(directory)
