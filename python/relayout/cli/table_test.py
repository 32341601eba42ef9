"""Text for people."""

import pytest

from relayout.cli import table


@pytest.mark.parametrize(
  ("num_bytes", "text"),
  [
    (0, "0 B"),
    (1023, "1023 B"),
    (1536, "1.5 KiB"),
    (1 << 30, "1.0 GiB"),
    (1 << 70, "1048576.0 PiB"),
  ],
)
def test_size(num_bytes, text):
  assert table.size(num_bytes) == text


@pytest.mark.parametrize(
  ("number", "noun", "text"),
  [(1, "leaf", "1 leaf"), (2, "leaf", "2 leaves"), (0, "step", "0 steps")],
)
def test_count(number, noun, text):
  assert table.count(number, noun) == text


def test_columns_align():
  assert table.columns([("a", "bb"), ("ccc", "d")]) == "  a    bb\n  ccc  d"
  assert table.columns([]) == ""


def test_hostile_names_do_not_reach_the_terminal():
  assert table.printable("a\x1b[2J\r\x9b\x7f") == r"a\x1b[2J\x0d\x9b\x7f"
  assert table.printable("two\nlines, \u00e9") == "two\nlines, \u00e9"
  assert table.printable("half \udc80") == r"half \udc80"
  assert table.columns([("a\nb", "c")]) == r"  a\nb  c"
