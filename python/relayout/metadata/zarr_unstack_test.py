import dataclasses
import itertools

import numpy as np
import pytest
import tensorstore as ts
from hypothesis import given, settings
from hypothesis import strategies as st

from relayout.errors import LayoutError
from relayout.metadata import zarr_array, zarr_stack, zarr_unstack
from tests.support.specs import spec_of_v2, spec_of_v3


@st.composite
def specs(draw):
  """Arrays of either version, sharded or not, with names of axes or not."""
  rank = draw(st.integers(0, 4))
  lengths = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
  shape, inner = draw(lengths), draw(lengths)
  if draw(st.booleans()):
    return spec_of_v2(shape, inner)
  factors = draw(st.none() | lengths)
  if factors is None:
    spec = spec_of_v3(shape, inner)
  else:
    whole = [a * b for a, b in zip(inner, factors, strict=True)]
    spec = spec_of_v3(shape, whole, inner)
  if draw(st.booleans()):
    raw = {**spec.raw, "dimension_names": [f"axis{i}" for i in range(rank)]}
    spec = dataclasses.replace(spec, raw=raw)
  return spec


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_inverts_stacking(data):
  spec = data.draw(specs())
  stacked, axes = spec, []
  for _ in range(data.draw(st.integers(0, 3))):
    axis = data.draw(st.integers(0, stacked.rank))
    count = data.draw(st.integers(1, 4))
    names = list(map(str, range(count)))
    axes = [a + (a >= axis) for a in axes] + [axis]
    stacked = zarr_stack.stack_array_specs([stacked] * count, axis, names)
  result = zarr_unstack.remove_axes(stacked, data.draw(st.permutations(axes)))
  assert result == spec
  assert zarr_array.array_metadata_bytes(
    result
  ) == zarr_array.array_metadata_bytes(spec)


@settings(max_examples=200, deadline=None)
@given(specs(), st.data())
def test_the_metadata_says_what_the_spec_says(spec, data):
  axes = [axis for axis, length in enumerate(spec.chunk_shape) if length == 1]
  chosen = data.draw(st.lists(st.sampled_from(axes or [0]), unique=True))
  result = zarr_unstack.remove_axes(spec, chosen if axes else [])
  parsed = zarr_array.parse_array_metadata(
    result.metadata_key, zarr_array.array_metadata_bytes(result)
  )
  assert parsed == result


def _open(directory, spec, **options):
  driver = "zarr" if spec.zarr_format == 2 else "zarr3"
  kvstore = {"driver": "file", "path": f"{directory}/"}
  return ts.open({"driver": driver, "kvstore": kvstore}, **options).result()


@pytest.mark.parametrize(
  "spec",
  [
    spec_of_v2([3, 4, 2], [1, 2, 1]),
    spec_of_v3([3, 4, 2], [1, 2, 1]),
    spec_of_v3([3, 4, 2], [1, 4, 1], [1, 2, 1]),
  ],
)
def test_tensorstore_reads_the_chunks_of_a_slice(tmp_path, spec):
  """Chunks of the array, at one layer, under the keys of the slice."""
  values = np.arange(24, dtype=np.float32).reshape(3, 4, 2) + 1
  source = tmp_path / "source"
  source.mkdir()
  (source / spec.metadata_key).write_bytes(
    zarr_array.array_metadata_bytes(spec)
  )
  _open(source, spec, open=True).write(values).result()
  part = zarr_unstack.remove_axes(spec, [2, 0])
  assert part.shape == (4,)
  for layer, last in itertools.product(range(3), range(2)):
    target = tmp_path / f"{layer}.{last}"
    (target / "c").mkdir(parents=True)
    (target / part.metadata_key).write_bytes(
      zarr_array.array_metadata_bytes(part)
    )
    for i in range(part.grid[0]):
      if spec.zarr_format == 2:
        old, new = f"{layer}.{i}.{last}", f"{i}"
      else:
        old, new = f"c/{layer}/{i}/{last}", f"c/{i}"
      (target / new).write_bytes((source / old).read_bytes())
    read = _open(target, part, read=True).read().result()
    assert read.tobytes() == values[layer, :, last].tobytes()


@pytest.mark.parametrize(
  ("spec", "axis", "message"),
  [
    (spec_of_v2([3, 4], [2, 4]), 0, r"\[2, 4\] have length 2 along axis 0"),
    (spec_of_v2([3, 1], [1, 4]), 1, "length 4 along axis 1"),
    (spec_of_v3([4, 4], [2, 4], [1, 4]), 0, "chunks of .* have length 2"),
    (spec_of_v3([4, 4], [2, 4], [2, 4]), 0, "inner chunks of"),
    (spec_of_v2([3, 4], [1, 4], order="F"), 0, "another order than C"),
    (
      spec_of_v2([3, 4], [1, 4], filters=[{"id": "delta", "dtype": "<f4"}]),
      0,
      "filters",
    ),
  ],
)
def test_chunks_that_cannot_stand(spec, axis, message):
  with pytest.raises(LayoutError, match=message):
    zarr_unstack.remove_axes(spec, [axis])


@pytest.mark.parametrize("axes", [[2], [-1], [0, 0]])
def test_axes_that_are_none(axes):
  with pytest.raises(ValueError, match="rank 2"):
    zarr_unstack.remove_axes(spec_of_v2([3, 4], [1, 1]), axes)
