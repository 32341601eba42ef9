"""Taking wrappers off an optimizer state.

States made by optax itself, saved by Tunix, are in `tests/conformance`.
"""

import numpy as np
import pytest

from relayout.errors import LayoutError
from relayout.layouts import optimizer
from relayout.layouts.state import StoredLeaf
from relayout.metadata.item import open_item
from tests.support import stores

_ADAM = ("count", "mu.w", "nu.w")
_MULTI = ("mini_step", "gradient_step", "acc_grads.w")
_INJECT = ("count", "hyperparams.learning_rate")


def _tree(tmp_path, *names: str) -> optimizer.Node:
  """Returns the nested tree of arrays with these names."""
  stores.write_item(tmp_path, {name: np.int32(0) for name in names})
  item = open_item(tmp_path)
  return optimizer.nest(
    {leaf.path.names: StoredLeaf(item, leaf) for leaf in item.leaves}
  )


def _below(prefix: str, *names: str) -> tuple[str, ...]:
  return tuple(f"{prefix}.{name}" for name in names)


@pytest.mark.parametrize(
  ("names", "kind", "wrappers"),
  [
    ((*_below("0", *_ADAM), "2.count"), "adamw", ()),
    (_below("0", *_ADAM), "adamw", ()),
    ((*_below("1.0", *_ADAM), "1.2.count"), "adamw", ("chain",)),
    (_below("1", *_ADAM), "adam_pax", ("chain",)),
    (_ADAM, "adam_pax", ()),
    (
      (*_MULTI, *_below("inner_opt_state.1.0", *_ADAM)),
      "adamw",
      ("MultiSteps", "chain"),
    ),
    (
      (*_INJECT, *_below("inner_state.1.0", *_ADAM)),
      "adamw",
      ("inject_hyperparams", "chain"),
    ),
    (
      (
        *_MULTI,
        *_below("inner_opt_state", *_INJECT),
        *_below("inner_opt_state.inner_state.1.0", *_ADAM),
      ),
      "adamw",
      ("MultiSteps", "inject_hyperparams", "chain"),
    ),
    (
      (
        *_INJECT,
        *_below("inner_state", *_MULTI),
        *_below("inner_state.inner_opt_state.0", *_ADAM),
        "inner_state.inner_opt_state.2.count",
      ),
      "adamw",
      ("inject_hyperparams", "MultiSteps"),
    ),
    (
      (
        *_below("1", *_MULTI),
        *_below("1.inner_opt_state.0", *_ADAM),
        "1.skip_state.num_not_finite",
      ),
      "adamw",
      ("chain", "MultiSteps"),
    ),
  ],
)
def test_wrappers_in_any_order(tmp_path, names, kind, wrappers):
  found = optimizer.unwrap(_tree(tmp_path, *names))
  assert found.kind == kind
  assert found.wrappers == wrappers
  assert found.count.leaf.name.endswith("count")
  assert set(found.moments) == {"mu", "nu"}


def test_every_leaf_is_kept_or_dropped_with_a_reason(tmp_path):
  names = (
    *_MULTI,
    "skip_state.num_not_finite",
    *_below("inner_opt_state", *_INJECT),
    "inner_opt_state.hyperparams_states.learning_rate.count",
    *_below("inner_opt_state.inner_state.1.0", *_ADAM),
    "inner_opt_state.inner_state.1.2.count",
  )
  found = optimizer.unwrap(_tree(tmp_path, *names))
  kept = [
    found.count,
    found.schedule_count,
    found.injected_count,
    found.gradient_step,
    *(
      leaf
      for tree in found.moments.values()
      for _, leaf in optimizer.flatten(tree)
    ),
  ]
  labels = [leaf.leaf.name for leaf in kept]
  labels += [item.leaf.leaf.name for item in found.dropped]
  assert sorted(labels) == sorted(names)
  assert all(item.reason for item in found.dropped)


@pytest.mark.parametrize(
  "names",
  [
    ("0.trace.w", "1.count"),  # sgd with momentum
    (*_below("1", *_ADAM), "2.count"),  # clip, adam, schedule: not AdamW
    (*_below("0", *_ADAM), "1.count"),  # optax.adam with a schedule
    (*_below("0", *_ADAM), "2.count", "3.count"),
    ("0.v_row.w", "0.v_col.w", "0.count"),
    ("inner_state.0.count", "losses", "grad_norms"),
    ("count",),
    (*_MULTI, "extra", *_below("inner_opt_state.0", *_ADAM)),
    # Two counts of updates: which one is the step?
    (
      *_MULTI,
      *_below("inner_opt_state", *_MULTI),
      *_below("inner_opt_state.inner_opt_state.0", *_ADAM),
    ),
    (
      *_INJECT,
      *_below("inner_state", *_INJECT),
      *_below("inner_state.inner_state.0", *_ADAM),
    ),
  ],
)
def test_other_optimizers_are_refused_with_advice(tmp_path, names):
  with pytest.raises(LayoutError, match="--params_only"):
    optimizer.unwrap(_tree(tmp_path, *names))
