"""One MaxText import for all tests; a forked child for each case."""

import os

import pytest
from harness import forks

_MAX_RUNNING = 2


@pytest.fixture(scope="session")
def pool(request, tmp_path_factory):
  """A pool that all cases of this session are queued in, in order."""
  _import_maxtext()
  result = forks.ForkPool(
    tmp_path_factory.mktemp("cases"),
    max_running=_MAX_RUNNING,
    env={"JAX_PLATFORMS": "cpu"},
  )
  for item in request.session.items:
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")
    if case:
      result.submit(case.name, case.run, env=case.env)
  yield result
  result.close()
  report = request.config.pluginmanager.get_plugin("terminalreporter")
  for name, seconds in result.seconds().items():
    report.write_line(f"{seconds:6.1f} s {name}")


@pytest.fixture
def outcome(pool, case):
  """What `case.run` returned."""
  return pool.result(case.name)


def _import_maxtext():
  os.environ.setdefault("JAX_PLATFORMS", "cpu")
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  import maxtext.trainers.post_train.dpo.train_dpo
  import maxtext.trainers.post_train.sft.train_sft
  import maxtext.trainers.pre_train.train  # noqa: F401
  from jax._src import xla_bridge

  assert not xla_bridge.backends_are_initialized(), (
    "a JAX client does not survive a fork"
  )
