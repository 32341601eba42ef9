"""A small file in each converted step that says where it came from.

A second run recognises its own work by it, and leaves anything else alone.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import relayout
from relayout.convert.options import Options
from relayout.errors import CorruptCheckpointError
from relayout.metadata import safe_json
from relayout.metadata.item import Item

FILE = "relayout.json"


def describe(
  layout: str, items: Sequence[Item], options: Options
) -> dict[str, Any]:
  """Returns the provenance of a step made from `items` of a layout."""
  return {
    "relayout": relayout.__version__,
    "conversion": f"{layout} to {options.to}",
    "source": {item.name: _databases(item) for item in items},
    "options": options.identity(),
  }


def _databases(item: Item) -> list[dict[str, Any]]:
  """Identifies what an item holds: OCDBT gives each database an own uuid."""
  return [
    {"uuid": listing.uuid.hex(), "generation": listing.generation}
    for listing in item.listings
  ]


def encode(provenance: dict[str, Any]) -> bytes:
  """Returns the content of the file."""
  return (json.dumps(provenance, indent=1) + "\n").encode()


def read(step: Path) -> dict[str, Any] | None:
  """Returns the provenance of a step directory, or None if it has none."""
  path = step / FILE
  if not path.is_file():
    return None
  try:
    content = safe_json.read(path)
  except CorruptCheckpointError:
    return None
  return content if isinstance(content, dict) else None
