"""Unstacking inside a shard: inner chunks become chunks of their own."""

import hypothesis
from hypothesis import strategies as st

from relayout import _native
from tests.native import oracle, rekeying
from tests.property import databases, laws

DEFAULT = _native.ChunkKeyFormat("default", "/")


@st.composite
def stacked_specs(draw):
  """Layers on axis 0, several of them in one shard."""
  num_layers = draw(st.integers(1, 6))
  per_shard = draw(st.integers(1, 4))
  side = draw(st.integers(1, 4))
  return databases.ArraySpec(
    name="stacked",
    driver="zarr3",
    separator="/",
    shape=(num_layers, draw(st.integers(1, 8))),
    chunk_shape=(per_shard, side),
    inner_chunk_shape=(1, side),
    seed=draw(st.integers(0, 2**32)),
  )


def unshard_moves(spec, values):
  """Returns a move for each inner chunk of each stored shard."""
  num_layers, (per_shard, _) = spec.shape[0], spec.chunk_shape
  for i in range(spec.grid[0]):
    for j in range(spec.grid[1]):
      key = f"{spec.name}/{spec.chunk_key((i, j))}".encode()
      if key not in values:
        continue
      index = _native.decode_shard_index(
        values[key], num_chunks=per_shard, checksum=True
      )
      for inner, value_range in enumerate(index):
        layer = i * per_shard + inner
        if value_range is not None and layer < num_layers:
          yield _native.ArrayMove(
            0,
            spec.name,
            f"layer{layer}",
            DEFAULT,
            DEFAULT,
            spec.grid,
            [("index", j)],
            [(0, i), (1, j)],
            value_range,
          )


def layer_spec(spec, layer):
  return databases.ArraySpec(
    name=f"layer{layer}",
    driver="zarr3",
    separator="/",
    shape=spec.shape[1:],
    chunk_shape=spec.chunk_shape[1:],
    inner_chunk_shape=None,
    seed=0,
  )


@laws.SETTINGS
@hypothesis.given(spec=stacked_specs(), options=laws.OPTIONS)
def test_inner_chunks_become_chunks(spec, options):
  with laws.scratch() as directory:
    source, target = directory / "source", directory / "target"
    databases.write_database(source, [spec], {"max_inline_value_bytes": 0})
    listing = _native.list_database(source)
    layers = [layer_spec(spec, layer) for layer in range(spec.shape[0])]
    moves = list(unshard_moves(spec, oracle.read_all(source)))
    plan = _native.plan_rekey(
      [listing],
      moves=moves,
      literals=[laws.metadata_of(layer) for layer in layers],
      drops=[] if moves else [(0, spec.name)],
    )
    rekeying.link_and_apply(plan, [listing], target, **options)
    for layer, values in zip(layers, spec.values(), strict=True):
      read = databases.read_array(target, "zarr3", layer.name)
      assert read.tobytes() == values.tobytes()
