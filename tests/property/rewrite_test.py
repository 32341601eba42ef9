"""Laws of rewriting: NumPy says what an array becomes, TensorStore reads it."""

import dataclasses
import math
import pathlib
import tempfile

import hypothesis
import numpy as np
from hypothesis import strategies as st

from relayout import _native
from tests.native import rewriting

FLOATS = ("float16", "bfloat16", "float32", "float64")
OTHERS = (
  "bool",
  "int4",
  "int8",
  "uint16",
  "int32",
  "uint32",
  "int64",
  "float8_e4m3fn",
  "float8_e5m2",
  "complex64",
  "complex128",
)
THREADS = (1, 2, 5)
MIB = 1 << 20
SETTINGS = hypothesis.settings(
  max_examples=60,
  deadline=None,
  database=None,
  suppress_health_check=[hypothesis.HealthCheck.too_slow],
)


@dataclasses.dataclass(frozen=True)
class Side:
  """One side of a task: its arrays, and where their axes are."""

  is_stacked: bool
  axes: tuple[int, ...]
  form: rewriting.Form
  layers: tuple[tuple[int, ...], ...]  # coordinates of each array

  def names(self, prefix):
    return [f"{prefix}{n}" for n in range(len(self.layers))]


@dataclasses.dataclass(frozen=True)
class Case:
  shape: tuple[int, ...]
  layer_axes: tuple[int, ...]
  source: Side
  target: Side
  seed: int
  store_fill: bool
  memory_limit: int


def dtype_pairs():
  casts = st.tuples(st.sampled_from(FLOATS), st.sampled_from(FLOATS))
  same = st.sampled_from(FLOATS + OTHERS).map(lambda name: (name, name))
  return casts | same


@st.composite
def sides(draw, shape, layer_axes, min_chunk, **form):
  is_stacked = not layer_axes or draw(st.booleans())
  axes = [a for a in range(len(shape)) if is_stacked or a not in layer_axes]
  axes = tuple(draw(st.permutations(axes)))
  lengths = tuple(shape[a] for a in axes)
  chunk_shape = tuple(
    draw(st.integers(min(min_chunk, n + 1), n + 2)) for n in lengths
  )
  layers = [()]
  if not is_stacked:
    layers = list(np.ndindex(*(shape[a] for a in layer_axes)))
  return Side(
    is_stacked,
    axes,
    rewriting.Form(lengths, chunk_shape, **form),
    tuple(layers),
  )


@st.composite
def cases(draw, shapes, min_chunk, memory_limits):
  shape = draw(shapes)
  axes = draw(st.permutations(range(len(shape))))
  layer_axes = tuple(axes[: draw(st.integers(0, min(2, len(axes))))])
  source_dtype, target_dtype = draw(dtype_pairs())
  levels = st.sampled_from([None, 1, 3])
  big_endian = draw(st.booleans())
  source = draw(
    sides(
      shape,
      layer_axes,
      min_chunk,
      dtype=source_dtype,
      zstd_level=draw(levels),
      big_endian=big_endian,
      f_order=draw(st.booleans()),
      fill=draw(st.sampled_from([0, 1])),
    )
  )
  target = draw(
    sides(
      shape,
      layer_axes,
      min_chunk,
      dtype=target_dtype,
      zstd_level=draw(levels),
      fill=draw(st.sampled_from([0, 1])),
    )
  )
  return Case(
    shape,
    layer_axes,
    source,
    target,
    draw(st.integers(0, 2**32)),
    draw(st.booleans()),
    draw(memory_limits),
  )


def random_values(form, rng):
  """Returns elements of any bits; some chunks hold the fill value."""
  if form.dtype == "bool":
    values = rng.integers(0, 2, form.shape).astype(bool)
  elif form.dtype == "int4":
    values = rng.integers(-8, 8, form.shape).astype(form.element)
  else:
    size = math.prod(form.shape) * form.element.itemsize
    values = np.frombuffer(rng.bytes(size), form.element).reshape(form.shape)
  values = values.copy()
  grid = [
    math.ceil(n / c) for n, c in zip(form.shape, form.chunk_shape, strict=True)
  ]
  for index in np.ndindex(*grid):
    if rng.random() < 0.3:
      starts = zip(index, form.chunk_shape, strict=True)
      values[tuple(slice(i * c, (i + 1) * c) for i, c in starts)] = form.fill
  return values


def gather(case, side, arrays):
  """Returns the array of the common space that the arrays of a side hold."""
  common = np.empty(case.shape, side.form.element)
  for layer, array in zip(side.layers, arrays, strict=True):
    part = view_of_layer(case, side, common, layer)
    part[...] = array
  return common


def view_of_layer(case, side, common, layer):
  """Returns the part of `common` that one array of a side holds."""
  index = [slice(None)] * len(case.shape)
  if side.is_stacked:
    return common.transpose(side.axes)
  for axis, position in zip(case.layer_axes, layer, strict=True):
    index[axis] = slice(position, position + 1)
  axes = (*side.axes, *case.layer_axes)
  return common[tuple(index)].transpose(axes)[
    (..., *[0] * len(case.layer_axes))
  ]


def make_task(case, listing):
  source, target = case.source, case.target
  return _native.RewriteTask(
    case.shape,
    case.layer_axes,
    [rewriting.source(listing, n, source.form) for n in source.names("s")],
    [
      rewriting.target(n, target.form, store_fill=case.store_fill)
      for n in target.names("t")
    ],
    source_axes=source.axes,
    target_axes=target.axes,
  )


def check(case):
  rng = np.random.default_rng(case.seed)
  with tempfile.TemporaryDirectory() as directory:
    root = pathlib.Path(directory)
    rewriting.make_empty_database(root / "source")
    for name in case.source.names("s"):
      values = random_values(case.source.form, rng)
      rewriting.write_array(root / "source", name, case.source.form, values)
    listing = _native.list_database(root / "source")
    written = set()
    for threads in THREADS:
      plan = _native.plan_rewrite(
        [make_task(case, listing)],
        memory_limit=case.memory_limit,
        num_threads=threads,
      )
      result = rewriting.rewrite(plan, root / f"{threads}", sync=False)
      assert result.peak_buffer_bytes <= case.memory_limit
      data = root / f"{threads}/d/0"
      written.add(data.read_bytes() if data.exists() else b"")
    assert len(written) == 1
    rewriting.make_database(result, root / f"{threads}")
    compare(case, root / "source", root / f"{threads}")


def compare(case, source, target):
  """Compares what TensorStore reads of both databases, byte by byte."""
  arrays = [
    rewriting.read_array(source, name) for name in case.source.names("s")
  ]
  with np.errstate(all="ignore"):
    common = gather(case, case.source, arrays).astype(case.target.form.element)
  names = case.target.names("t")
  for layer, name in zip(case.target.layers, names, strict=True):
    want = view_of_layer(case, case.target, common, layer)
    assert rewriting.read_array(target, name).tobytes() == want.tobytes()


@SETTINGS
@hypothesis.given(
  cases(
    st.lists(st.integers(0, 5), max_size=6).map(tuple),
    1,
    st.sampled_from([2 * MIB, 32 * MIB]),
  )
)
def test_any_small_arrays(case):
  check(case)


@hypothesis.settings(SETTINGS, max_examples=25)
@hypothesis.given(
  cases(
    st.lists(st.integers(30, 90), min_size=3, max_size=3)
    .map(tuple)
    .map(lambda shape: (*shape[:2], shape[2] // 10)),
    20,
    st.sampled_from([6 * MIB, 8 * MIB, 64 * MIB]),
  )
)
def test_arrays_larger_than_a_piece(case):
  check(case)
