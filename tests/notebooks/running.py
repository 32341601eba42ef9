"""Runs notebooks in a kernel of their own."""

import os
import pathlib
import sys

import nbclient
import nbformat
from jupyter_client import kernelspec, manager

NOTEBOOKS = sorted(
  (pathlib.Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb")
)

_CELL_SECONDS = 600


def run(path: pathlib.Path) -> nbformat.NotebookNode:
  """Returns a notebook with the outputs of a fresh run.

  The kernel is this process's interpreter and imports what this one does.

  Args:
    path: The notebook.

  Raises:
    CellExecutionError: If a cell fails; says which, and why.
  """
  notebook = nbformat.read(path, as_version=4)
  # Without directories to look in there is the native kernel and no other.
  specs = kernelspec.KernelSpecManager(kernel_dirs=[])
  kernels = manager.AsyncKernelManager(kernel_spec_manager=specs)
  client = nbclient.NotebookClient(
    notebook, km=kernels, timeout=_CELL_SECONDS, record_timing=False
  )
  # No colours in messages; no files of the user's own Jupyter.
  environment = {
    **os.environ,
    "NO_COLOR": "1",
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
  }
  client.execute(env=environment)
  return notebook
