"""In which form the layers of a model are stored."""

import dataclasses

from relayout.layouts.layers import Grouping
from relayout.layouts.state import ScanMode


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
  """How the arrays of layers are stored.

  Attributes:
    mode: Whether the layers are scanned.
    scan_axis: Where the layer axis of a scanned model is.
    grouping: Which layers form which stack; None where it doesn't matter,
      because the layers stay as they are.
  """

  mode: ScanMode
  scan_axis: int = 1
  grouping: Grouping | None = None

  def is_stored_like(self, other: "Form") -> bool:
    """Whether no array changes its layers between this form and `other`."""
    if self.mode != other.mode:
      return False
    return self.mode != "scanned" or self.scan_axis == other.scan_axis
