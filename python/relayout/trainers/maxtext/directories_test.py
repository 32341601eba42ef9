"""Steps that a program would not see are noticed."""

import pytest

from relayout.errors import OptionError
from relayout.trainers.maxtext.directories import check_level, has_steps


@pytest.fixture
def checkpoints(tmp_path):
  def make(*names):
    for name in names:
      (tmp_path / name).mkdir(parents=True)
    return f"{tmp_path}/"

  return make


@pytest.mark.parametrize(
  ("names", "level"),
  [
    ((), ""),
    ((), "actor"),
    (("4",), ""),
    (("4", "actor/2"), ""),
    (("actor/4",), "actor"),
    (("actor",), ""),
    (("actor/4.orbax-checkpoint-tmp",), ""),
  ],
)
def test_nothing_is_overlooked(checkpoints, names, level):
  check_level(checkpoints(*names), level=level)


@pytest.mark.parametrize(
  ("names", "level", "newest"),
  [(("actor/4", "actor/12"), "", "actor/12"), (("4",), "actor", "4")],
)
def test_steps_elsewhere_are_an_error(checkpoints, names, level, newest):
  root = checkpoints(*names)
  with pytest.raises(OptionError, match="would start from scratch") as error:
    check_level(root, level=level)
  assert f"load_full_state_path={root}{newest}" in str(error.value)


def test_has_steps(checkpoints):
  root = checkpoints("actor/4")
  assert has_steps(root, level="actor")
  assert not has_steps(root)
  assert not has_steps(root + "missing")
