"""Says in what two checkpoints differ, in whatever form each is stored.

Importing this package imports neither NumPy nor TensorStore.
"""

from relayout.comparison.forms import Declared
from relayout.diff.report import DiffReport, LeafDiff, Status, StepDiff
from relayout.diff.run import MEMORY_LIMIT, diff
from relayout.diff.table import render_table

__all__ = [
  "MEMORY_LIMIT",
  "Declared",
  "DiffReport",
  "LeafDiff",
  "Status",
  "StepDiff",
  "diff",
  "render_table",
]
