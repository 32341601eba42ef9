"""Names in the databases of many chunks.

Array `i` is one of the matrices of layer `i // 3`, and each has at most a
thousand chunks.
"""

from collections.abc import Iterator

_MATRICES = ("wi_0", "wi_1", "wo")
_MAX_CHUNKS = 1000
_NUM_COLUMNS = 10


def arrays(num_chunks: int) -> Iterator[tuple[str, tuple[int, int]]]:
  """Yields name and chunk grid of each array."""
  per_array = min(num_chunks, _MAX_CHUNKS)
  for number in range(num_chunks // per_array):
    layer, matrix = divmod(number, len(_MATRICES))
    name = f"decoder.layers_{layer}.mlp.{_MATRICES[matrix]}.kernel.value"
    yield name, grid(per_array)


def grid(num_array_chunks: int) -> tuple[int, int]:
  """Returns the chunk grid of an array with that many chunks."""
  num_rows, rest = divmod(num_array_chunks, _NUM_COLUMNS)
  if rest:
    raise ValueError(f"{num_array_chunks} chunks are not a multiple of ten")
  return num_rows, _NUM_COLUMNS


def renamed(name: str) -> str:
  """Returns what MaxText calls an array of Tunix."""
  return f"params.params.{name.removesuffix('.value')}"


def renamed_key(key: str) -> str:
  """Returns the new name of a key, `<array>/<rest>`."""
  name, rest = key.split("/", 1)
  return f"{renamed(name)}/{rest}"
