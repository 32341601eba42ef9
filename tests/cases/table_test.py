"""`docs/cases.md` names tests that exist."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"\| (?P<case>[A-G]\d+) \| .+ \| (?P<tests>.+) \|")
_TESTS = re.compile(r"(?P<names>(?:`test_\w+`(?:, )?)+) \((?P<file>[\w/.]+)\)")


def _rows():
  text = (_ROOT / "docs" / "cases.md").read_text()
  table, _, _ = text.partition("## Not here")
  return [*_ROW.finditer(table)]


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row["case"])
def test_named_tests_exist(row):
  found = [*_TESTS.finditer(row["tests"])]
  assert ", ".join(match[0] for match in found) == row["tests"]
  for match in found:
    source = (_ROOT / match["file"]).read_text()
    for name in re.findall(r"\w+", match["names"]):
      assert f"\ndef {name}(" in source, f"{name} in {match['file']}"


def test_no_row_is_overlooked():
  text = (_ROOT / "docs" / "cases.md").read_text()
  table, _, _ = text.partition("## Not here")
  rows = [line for line in table.splitlines() if line.startswith("| ")]
  cases = [row["case"] for row in _rows()]
  assert len(rows) - 1 == len(cases) == len({*cases}) > 30
