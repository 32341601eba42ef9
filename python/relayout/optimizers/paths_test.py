"""By paths, the same comes out as for live states."""

import jax
import numpy as np
import pytest

from relayout.errors import LayoutError
from relayout.optimizers import nodes
from relayout.optimizers.paths import restore_paths, strip_paths
from relayout.optimizers.wrappers import strip_wrappers
from tests.support.optimizer_stacks import PARAMS, Stack, step_of, train

_STACKS = [
  Stack("adamw"),
  Stack("adamw", ("clip",), has_schedule=False),
  Stack("adamw", (2, "inject", "clip")),
  Stack("adamw", ("inject", "clip", 2)),
  Stack("adam_pax", (1, "clip", "inject")),
  Stack("sgd", ("clip", "inject")),
  Stack("multi_transform", (2, "inject", "clip")),
]


def _by_path(state):
  return dict(nodes.leaves(state))


@pytest.mark.parametrize("stack", _STACKS, ids=str)
def test_as_the_live_state(stack):
  optimizer, _ = step_of(stack)
  like = optimizer.init(PARAMS)
  _, state = train(stack, PARAMS, like, range(2 * stack.every))
  found = strip_paths(_by_path(state))
  want = _by_path(strip_wrappers(state).state)
  assert found.keys() == want.keys()
  assert all(found[path] is want[path] for path in want)
  restored = restore_paths(found, _by_path(like))
  assert restored.keys() == _by_path(state).keys()
  for path, leaf in _by_path(state).items():
    if "hyperparams" not in path:
      np.testing.assert_array_equal(restored[path], leaf)


def test_leaves_may_be_anything():
  state = Stack("adamw", (2, "inject", "clip")).build().init(PARAMS)
  names = {path: ".".join(path) for path in _by_path(state)}
  assert strip_paths(names)["0", "mu", "out"] == (
    "inner_opt_state.inner_state.1.0.mu.out"
  )
  plain = strip_paths(names)
  restored = restore_paths(plain, dict.fromkeys(names, "like"))
  assert restored["inner_opt_state", "inner_state", "1", "0", "nu", "out"] == (
    "inner_opt_state.inner_state.1.0.nu.out"
  )
  assert jax.tree.structure(restored) == jax.tree.structure(names)


def test_leaves_below_leaves():
  with pytest.raises(LayoutError, match=r"mu\.w: lies below another leaf"):
    strip_paths({("mu",): 1, ("mu", "w"): 2})
  with pytest.raises(LayoutError, match="mu: other leaves lie below it"):
    strip_paths({("mu", "w"): 2, ("mu",): 1})
