"""Strategies for databases of arrays, written by TensorStore."""

import dataclasses
import itertools
import math

import numpy as np
import tensorstore as ts
from hypothesis import strategies as st

from tests.native import oracle

# Names whose keys sort in unlike ways, or that begin with each other.
NAMES = ("a", "a.b", "a0", "ab", "a!", "a.b.c", "layer_1", "layer_10", "é")


@dataclasses.dataclass(frozen=True)
class ArraySpec:
  """One array: its form, and which of its chunks are stored."""

  name: str
  driver: str  # zarr or zarr3
  separator: str
  shape: tuple[int, ...]
  chunk_shape: tuple[int, ...]
  inner_chunk_shape: tuple[int, ...] | None  # of a zarr v3 shard
  seed: int

  @property
  def grid(self):
    """Number of chunks along each axis."""
    return [
      math.ceil(n / c)
      for n, c in zip(self.shape, self.chunk_shape, strict=True)
    ]

  @property
  def key_style(self):
    return "v2" if self.driver == "zarr" else "default"

  def chunk_key(self, index):
    """Spells the key of a chunk below the array."""
    if self.driver == "zarr":
      return self.separator.join(map(str, index)) or "0"
    return self.separator.join(["c", *map(str, index)])

  def metadata(self):
    """Returns the metadata for TensorStore's spec."""
    if self.driver == "zarr":
      return {
        "shape": self.shape,
        "chunks": self.chunk_shape,
        "dtype": "<i4",
        "compressor": {"id": "zstd", "level": 1},
        "dimension_separator": self.separator,
      }
    codecs = [
      {"name": "bytes", "configuration": {"endian": "little"}},
      {"name": "zstd", "configuration": {"level": 1}},
    ]
    if self.inner_chunk_shape is not None:
      configuration = {
        "chunk_shape": self.inner_chunk_shape,
        "codecs": codecs,
      }
      codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    return {
      "shape": self.shape,
      "data_type": "int32",
      "chunk_grid": {
        "name": "regular",
        "configuration": {"chunk_shape": self.chunk_shape},
      },
      "chunk_key_encoding": {
        "name": "default",
        "configuration": {"separator": self.separator},
      },
      "codecs": codecs,
    }

  def values(self):
    """Returns the array; chunks of zeros are not stored."""
    rng = np.random.default_rng(self.seed)
    values = rng.integers(1, 1000, self.shape, np.int32)
    for index in itertools.product(*map(range, self.grid)):
      if rng.random() < 0.3:
        starts = zip(index, self.chunk_shape, strict=True)
        values[tuple(slice(i * c, (i + 1) * c) for i, c in starts)] = 0
    return values


@st.composite
def array_specs(draw, name):
  driver = draw(st.sampled_from(["zarr", "zarr3"]))
  rank = draw(st.integers(0, 3))
  sides = st.tuples(*[st.integers(1, 3)] * rank)
  inner = draw(sides)
  is_sharded = driver == "zarr3" and draw(st.booleans())
  factors = draw(sides) if is_sharded else (1,) * rank
  return ArraySpec(
    name=name,
    driver=driver,
    separator=draw(st.sampled_from([".", "/"])),
    shape=draw(st.tuples(*[st.integers(0, 12)] * rank)),
    chunk_shape=tuple(a * b for a, b in zip(inner, factors, strict=True)),
    inner_chunk_shape=inner if is_sharded else None,
    seed=draw(st.integers(0, 2**32)),
  )


@st.composite
def arrays(draw):
  """Arrays of different names; several may have one form."""
  names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=6))
  specs = []
  for name in names:
    if specs and draw(st.booleans()):
      form = draw(st.sampled_from(specs))
      seed = draw(st.integers(0, 2**32))
      specs.append(dataclasses.replace(form, name=name, seed=seed))
    else:
      specs.append(draw(array_specs(name)))
  return specs


configs = st.fixed_dictionaries(
  {
    "max_inline_value_bytes": st.sampled_from([0, 1, 30, 100, 2000]),
    "max_decoded_node_bytes": st.sampled_from([1, 400, 1000, 1 << 20]),
    "compression": st.sampled_from([None, {"id": "zstd", "level": 1}]),
  }
)


def write_array(directory, spec, **config):
  base = {"driver": "ocdbt", "base": f"file://{directory}/", "config": config}
  array = ts.open(
    {
      "driver": spec.driver,
      "kvstore": base | {"path": f"{spec.name}/"},
      "metadata": spec.metadata(),
    },
    create=True,
  ).result()
  array.write(spec.values()).result()


def write_database(directory, specs, config):
  """Makes a database of arrays, empty if there are none."""
  kvstore = oracle.open_kvstore(directory, **config)
  kvstore.write(b"made", b"").result()
  kvstore.write(b"made", None).result()
  for spec in specs:
    write_array(directory, spec, **config)


def read_array(directory, driver, name):
  base = {"driver": "ocdbt", "base": f"file://{directory}/"}
  spec = {"driver": driver, "kvstore": base | {"path": f"{name}/"}}
  return ts.open(spec, open=True).result().read().result()
