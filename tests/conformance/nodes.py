"""Where the nodes of a database are, by TensorStore's account."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorstore as ts


def dump_nodes(item: Path) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields every node of the newest version with its place, root first.

  A place is `btreenode:<base path>:<path>:<offset>:<length>`.
  """
  base = ts.KvStore.open(f"file://{item.absolute()}/").result()
  manifest = ts.ocdbt.dump(base).result()
  root = manifest["versions"][-1]["root"].get("location")
  places = [root] if root else []
  while places:
    place = places.pop()
    node = ts.ocdbt.dump(base, place).result()
    yield place, node
    if node["height"]:
      places += [entry["location"] for entry in node["entries"]]
