"""The notebooks run, and what is stored of them can be read as it is.

They hold assertions of their own: a fact that does not hold fails a cell.
"""

import nbformat
import pytest
import running

_MAX_BYTES = 60_000


@pytest.fixture(params=running.NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
  return request.param


def test_runs(path):
  running.run(path)


def test_is_stored_with_its_outputs(path):
  notebook = nbformat.read(path, as_version=4)
  cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
  counts = [cell.execution_count for cell in cells]
  assert counts == list(range(1, len(cells) + 1))
  for cell in cells:
    if "print" in cell.source and not cell.source.startswith("def "):
      assert cell.outputs, cell.source
    # Nothing that failed, no warnings, no other kinds.
    for output in cell.outputs:
      assert (output.output_type, output.get("name")) == ("stream", "stdout")


def test_is_small_and_names_no_machine(path):
  assert path.stat().st_size < _MAX_BYTES
  text = path.read_text()
  for name in ("/tmp", "/home", "/root", "site-packages"):
    assert name not in text


def test_all_are_there():
  assert len(running.NOTEBOOKS) == 2
