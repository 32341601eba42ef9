"""Which number a step has in another layout."""

from relayout.comparison.side import Side
from relayout.comparison.step_pairs import Numbered
from relayout.layouts import maxtext, tunix
from relayout.layouts.state import LayoutName


def numbered(side: Side, other: LayoutName) -> Numbered:
  """Returns what tells a step from others.

  Args:
    side: The step.
    other: Layout of the side that it is compared with.
  """
  step = side.state.step
  updates = step.value if step else None
  number = side.step.number
  return Numbered(number, updates, _renumbered(side, updates, other))


def _renumbered(
  side: Side, updates: int | None, other: LayoutName
) -> int | None:
  layouts = {"maxtext": maxtext.LAYOUT, "tunix": tunix.LAYOUT}
  number = side.step.number
  if side.step.layout == other or other not in layouts:
    return number
  if updates is None and number is not None:
    # Tunix's directory N holds N updates, MaxText's N + 1.
    updates = number + (side.step.layout == "maxtext")
  return None if updates is None else layouts[other].number(updates)
