"""Unstacking inside a shard: inner chunks become chunks of their own."""

import json

import hypothesis
from hypothesis import strategies as st

from relayout import _native
from tests.native import oracle, rekeying
from tests.property import databases, laws

DEFAULT = _native.ChunkKeyFormat("default", "/")


@st.composite
def sharded_specs(draw):
  """Sharded arrays of any rank; shards may reach beyond the array."""
  rank = draw(st.integers(0, 3))
  sides = st.tuples(*[st.integers(1, 3)] * rank)
  inner = draw(sides)
  return databases.ArraySpec(
    name=draw(st.sampled_from(databases.NAMES)),
    driver="zarr3",
    separator="/",
    shape=draw(st.tuples(*[st.integers(0, 9)] * rank)),
    chunk_shape=tuple(a * b for a, b in zip(inner, draw(sides), strict=True)),
    inner_chunk_shape=inner,
    seed=draw(st.integers(0, 2**32)),
  )


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


def flat_grid(spec):
  """Returns the number of inner chunks along each axis."""
  sides = zip(spec.shape, spec.inner_chunk_shape, strict=True)
  return [-(-length // side) for length, side in sides]


def sharded_array(spec, metadata):
  """Returns the argument of `flatten_shards` and the ordinary metadata."""
  raw = json.loads(metadata)
  (sharding,) = raw["codecs"]
  raw["codecs"] = sharding["configuration"]["codecs"]
  grid = {"chunk_shape": list(spec.inner_chunk_shape)}
  raw["chunk_grid"]["configuration"] = grid
  sides = zip(spec.chunk_shape, spec.inner_chunk_shape, strict=True)
  return _native.ShardedArray(
    spec.name,
    DEFAULT,
    spec.grid,
    [whole // part for whole, part in sides],
    flat_grid(spec),
    checksum=True,
    at_end=True,
    metadata=json.dumps(raw).encode(),
  )


def flatten(directory, spec):
  listing = _native.list_database(directory)
  (entry,) = listing.arrays()
  array = sharded_array(spec, entry.metadata)
  return _native.flatten_shards(listing, [array])


@laws.SETTINGS
@hypothesis.given(spec=sharded_specs(), options=laws.OPTIONS)
def test_inner_chunks_become_an_array(spec, options):
  with laws.scratch() as directory:
    source, target = directory / "source", directory / "target"
    databases.write_database(source, [spec], {"max_inline_value_bytes": 50})
    flat = flatten(source, spec)
    plan = rekeying.plan_renames(flat, lambda name: f"{name}.flat")
    rekeying.link_and_apply(plan, [flat], target, **options)
    read = databases.read_array(target, "zarr3", f"{spec.name}.flat")
    assert read.tobytes() == spec.values().tobytes()


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


def unstack_moves(spec):
  for layer in range(spec.shape[0]):
    yield _native.ArrayMove(
      0,
      spec.name,
      f"layer{layer}",
      DEFAULT,
      DEFAULT,
      flat_grid(spec),
      [("axis", 1)],
      [(0, layer)],
    )


@laws.SETTINGS
@hypothesis.given(spec=stacked_specs(), options=laws.OPTIONS)
def test_layers_of_a_shard_become_arrays(spec, options):
  with laws.scratch() as directory:
    source, target = directory / "source", directory / "target"
    databases.write_database(source, [spec], {"max_inline_value_bytes": 0})
    flat = flatten(source, spec)
    layers = [layer_spec(spec, layer) for layer in range(spec.shape[0])]
    plan = _native.plan_rekey(
      [flat],
      moves=list(unstack_moves(spec)),
      literals=[laws.metadata_of(layer) for layer in layers],
      drops=[],
    )
    rekeying.link_and_apply(plan, [flat], target, **options)
    for layer, values in zip(layers, spec.values(), strict=True):
      read = databases.read_array(target, "zarr3", layer.name)
      assert read.tobytes() == values.tobytes()
    assert len(oracle.read_all(target)) == plan.num_keys
