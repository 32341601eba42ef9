"""MaxText's layout: placing, and reading what MaxText wrote."""

import pytest

from relayout.layouts import maxtext
from relayout.layouts.layout import Naming
from relayout.layouts.state import Role, StateKey
from relayout.metadata.item import open_item
from relayout.tree.key_path import dotted
from tests.support import golden

_WEIGHT = ("decoder", "decoder_norm", "scale")


@pytest.mark.parametrize(
  ("key", "optimizer", "name"),
  [
    (
      StateKey(Role.WEIGHT, _WEIGHT),
      None,
      "params.params.decoder.decoder_norm.scale",
    ),
    (StateKey(Role.STEP), "adamw", "step"),
    (StateKey(Role.COUNT), "adamw", "opt_state.0.count"),
    (StateKey(Role.SCHEDULE_COUNT), "adamw", "opt_state.2.count"),
    (StateKey(Role.COUNT), "adam_pax", "opt_state.count"),
    (
      StateKey(Role.MOMENT, _WEIGHT, "nu"),
      "adam_pax",
      "opt_state.nu.params.decoder.decoder_norm.scale",
    ),
    (
      StateKey(Role.MOMENT, _WEIGHT, "mu"),
      "adamw",
      "opt_state.0.mu.params.decoder.decoder_norm.scale",
    ),
  ],
)
def test_place(key, optimizer, name):
  assert dotted(maxtext.place(key, Naming(optimizer)).path.names) == name


@pytest.mark.parametrize("name", golden.MAXTEXT)
def test_place_inverts_read_for_what_maxtext_wrote(name):
  steps = sorted(golden.checkpoints(name).iterdir())
  item = open_item(steps[-1] / "items")
  state = maxtext.read_state(item)
  assert state.optimizer == "adamw"
  naming = Naming("adamw")
  placed = {maxtext.place(key, naming).path for key in state.leaves}
  placed |= {extra.place.path for extra in maxtext.extras(state, naming)}
  assert placed == {leaf.path for leaf in item.leaves}


def test_directory_n_holds_n_plus_one_updates():
  for step in golden.checkpoints("pretrain_scan").iterdir():
    state = maxtext.read_state(open_item(step / "items"))
    assert state.step is not None
    assert state.step.value == int(step.name) + 1
