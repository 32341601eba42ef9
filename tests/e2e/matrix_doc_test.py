"""`docs/matrix.md` shows the cases of the matrix; runs without MaxText."""

import pathlib

import pytest
from harness import matrix_cases

_DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "matrix.md"


@pytest.mark.parametrize(
  "table", [matrix_cases.table, matrix_cases.trainers_table]
)
def test_the_document_has_the_table(table):
  want = "\n".join(table())
  found = f"\n\n{want}\n\n" in f"{_DOCUMENT.read_text()}\n"
  assert found, f"docs/matrix.md should have\n{want}"
