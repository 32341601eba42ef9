import pytest

from tests.corrupt.attack import Attack
from tests.corrupt.runner import Runner


@pytest.fixture(scope="session")
def runner():
  with Runner() as runner:
    yield runner


@pytest.fixture
def attack(runner, tmp_path):
  return Attack(runner, tmp_path / "in", tmp_path / "out")
