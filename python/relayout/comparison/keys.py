"""Names of leaves that depend on no layout and on no scan mode."""

import dataclasses

from relayout.layouts.layers import canonical_layer
from relayout.layouts.state import Role, StateKey
from relayout.layouts.variables import non_weight
from relayout.tree.key_path import KeyPath, dotted

OTHER = "other"
"""Role of leaves that no layout knows."""

ROLES = (*(role.value for role in Role), OTHER)
"""All roles, in the order of reports."""


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
  """What a leaf is, of one layer where it belongs to one.

  Attributes:
    role: One of `ROLES`.
    path: Path in the unscanned model; of another leaf, the item's name and the
      path in it; empty for counters.
    slot: The accumulator of a moment: `mu` or `nu`.
  """

  role: str
  path: KeyPath = ()
  slot: str = ""

  def __str__(self) -> str:
    return " ".join(filter(None, (self.role, self.slot, dotted(self.path))))


def key_of(key: StateKey) -> Key:
  """Returns the name of a leaf of a state.

  A variable that is no weight may stand among the weights of a checkpoint that
  has nothing else; the table of such variables decides.
  """
  role = key.role
  if role is Role.WEIGHT and non_weight(key.path):
    role = Role.AUXILIARY
  return Key(role.value, canonical_layer(key.path), key.slot)
