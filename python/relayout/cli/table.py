"""Text tables and sizes for people."""

import re
from collections.abc import Iterable, Sequence

# All that moves a cursor or starts an escape sequence, but a newline.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(num_bytes: int) -> str:
  """Returns a number of bytes with a unit, such as `1.5 MiB`."""
  value = float(num_bytes)
  for unit in _UNITS:
    if value < 1024 or unit == _UNITS[-1]:
      break
    value /= 1024
  return f"{int(value)} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def count(number: int, noun: str) -> str:
  """Returns a number with its noun, such as `1 leaf` or `2 leaves`."""
  if number == 1:
    return f"1 {noun}"
  plural = f"{noun[:-1]}ves" if noun.endswith("f") else f"{noun}s"
  return f"{number} {plural}"


def columns(rows: Iterable[Sequence[str]], indent: int = 2) -> str:
  """Returns rows as aligned columns, one row a line."""
  cells = [[cell.replace("\n", r"\n") for cell in row] for row in rows]
  if not cells:
    return ""
  widths = [
    max(len(cell) for cell in column) for column in zip(*cells, strict=True)
  ]
  return "\n".join(
    " " * indent
    + "  ".join(
      cell.ljust(width) for cell, width in zip(row, widths, strict=True)
    ).rstrip()
    for row in cells
  )


def shape(lengths: Iterable[int]) -> str:
  """Returns a shape as `[64, 128]`."""
  return "[" + ", ".join(map(str, lengths)) + "]"


def printable(text: str) -> str:
  """Returns text that is safe to print: names may come from a hostile file."""
  encodable = text.encode(errors="backslashreplace").decode()
  return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", encodable)
