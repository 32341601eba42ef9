"""Verifies a conversion, independently of how it was made.

Importing this package imports neither NumPy nor TensorStore.
"""

from relayout.comparison.forms import Declared
from relayout.verify.report import StepReport, VerifyReport
from relayout.verify.run import MEMORY_LIMIT, verify
from relayout.verify.table import render_table
from relayout.verify.values import Progress

__all__ = [
  "MEMORY_LIMIT",
  "Declared",
  "Progress",
  "StepReport",
  "VerifyReport",
  "render_table",
  "verify",
]
