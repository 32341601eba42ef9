"""Verifies a conversion, independently of how it was made.

Importing this package imports neither NumPy nor TensorStore.
"""

from relayout.verify.report import StepReport, VerifyReport
from relayout.verify.run import MEMORY_LIMIT, verify
from relayout.verify.step import Progress
from relayout.verify.table import render_table

__all__ = [
  "MEMORY_LIMIT",
  "Progress",
  "StepReport",
  "VerifyReport",
  "render_table",
  "verify",
]
