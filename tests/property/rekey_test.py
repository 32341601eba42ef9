"""Laws of re-keying, on any database that TensorStore writes."""

import collections
import dataclasses
import itertools

import hypothesis
import numpy as np
from hypothesis import strategies as st

from relayout import _native
from tests.native import oracle, rekeying
from tests.property import databases, laws


@dataclasses.dataclass(frozen=True)
class Placement:
  """Where one array goes: to `target`, or to a slice of it."""

  target: str
  scan_axis: int | None = None
  layer: int = 0
  num_layers: int = 1

  def target_index(self, index):
    if self.scan_axis is None:
      return index
    return (*index[: self.scan_axis], self.layer, *index[self.scan_axis :])


def form(spec):
  return dataclasses.replace(spec, name="", seed=0)


@st.composite
def placements(draw, specs):
  """An injective map: some arrays of one form are stacked, all are renamed."""
  names = draw(st.permutations([f"t{name}" for name in databases.NAMES]))
  groups = collections.defaultdict(list)
  for spec in specs:
    alone = draw(st.booleans()) and spec.name
    groups[form(spec), alone].append(spec)
  result = {}
  for (_, alone), group in groups.items():
    target = names.pop()
    if alone:
      result[alone] = Placement(target)
      continue
    scan_axis = draw(st.integers(0, len(group[0].shape)))
    for layer, spec in enumerate(draw(st.permutations(group))):
      result[spec.name] = Placement(target, scan_axis, layer, len(group))
  return result


def insert(sides, placement, value):
  if placement.scan_axis is None or sides is None:
    return sides
  axis = placement.scan_axis
  return (*sides[:axis], value, *sides[axis:])


def target_spec(spec, placement):
  """Returns the form of the array that `spec` goes to."""
  return dataclasses.replace(
    spec,
    name=placement.target,
    shape=insert(spec.shape, placement, placement.num_layers),
    chunk_shape=insert(spec.chunk_shape, placement, 1),
    inner_chunk_shape=insert(spec.inner_chunk_shape, placement, 1),
  )


def make_move(spec, placement):
  keys = _native.ChunkKeyFormat(spec.key_style, spec.separator)
  target_index = placement.target_index(
    tuple(("axis", axis) for axis in range(len(spec.shape)))
  )
  return _native.ArrayMove(
    0,
    spec.name,
    placement.target,
    keys,
    keys,
    spec.grid,
    [("index", t) if isinstance(t, int) else t for t in target_index],
  )


def make_inverse(spec, placement):
  keys = _native.ChunkKeyFormat(spec.key_style, spec.separator)
  stacked = target_spec(spec, placement)
  axes = list(range(len(stacked.shape)))
  filters = []
  if placement.scan_axis is not None:
    axes.remove(placement.scan_axis)
    filters = [(placement.scan_axis, placement.layer)]
  return _native.ArrayMove(
    0,
    placement.target,
    spec.name,
    keys,
    keys,
    stacked.grid,
    [("axis", axis) for axis in axes],
    filters,
  )


def expected(values, specs, where):
  """Returns the entries of the target, by the definition of a key."""
  want = {}
  for spec in specs:
    placement = where[spec.name]
    key, metadata = laws.metadata_of(target_spec(spec, placement))
    want[key.encode()] = metadata
    for index in itertools.product(*map(range, spec.grid)):
      source_key = f"{spec.name}/{spec.chunk_key(index)}".encode()
      if source_key in values:
        target_key = spec.chunk_key(placement.target_index(index))
        want[f"{placement.target}/{target_key}".encode()] = values[source_key]
  return want


def check_arrays(directory, specs, where):
  for spec in specs:
    placement = where[spec.name]
    read = databases.read_array(directory, spec.driver, placement.target)
    if placement.scan_axis is not None:
      read = np.take(read, placement.layer, placement.scan_axis)
    assert read.tobytes() == spec.values().tobytes()


def file_bytes(directory):
  return {
    path.relative_to(directory).as_posix(): path.read_bytes()
    for path in directory.rglob("*")
    if path.is_file()
  }


@laws.SETTINGS
@hypothesis.given(
  specs=databases.arrays(),
  config=databases.configs,
  options=laws.OPTIONS,
  data=st.data(),
)
def test_rekey_then_inverse(specs, config, options, data):
  where = data.draw(placements(specs))
  with laws.scratch() as directory:
    source, target = directory / "source", directory / "target"
    databases.write_database(source, specs, config)
    values = oracle.read_all(source)
    bytes_before = file_bytes(source)

    listing = _native.list_database(source)
    literals = {
      laws.metadata_of(target_spec(spec, where[spec.name])) for spec in specs
    }
    plan = _native.plan_rekey(
      [listing],
      moves=[make_move(spec, where[spec.name]) for spec in specs],
      literals=sorted(literals),
      drops=[],
    )
    report = rekeying.link_and_apply(plan, [listing], target, **options)

    want = expected(values, specs, where)
    assert oracle.read_all(target) == want
    check_arrays(target, specs, where)
    tree = oracle.dump_tree(target)
    assert tree.keys == sorted(want)
    assert (report.num_keys, report.num_nodes) == (len(want), tree.num_nodes)
    assert file_bytes(source) == bytes_before

    stacked = _native.list_database(target)
    back = _native.plan_rekey(
      [stacked],
      moves=[make_inverse(spec, where[spec.name]) for spec in specs],
      literals=[laws.metadata_of(spec) for spec in specs],
      drops=[],
    )
    rekeying.link_and_apply(back, [stacked], directory / "back", **options)
    assert oracle.read_all(directory / "back") == values


@laws.SETTINGS
@hypothesis.given(
  specs=databases.arrays(), config=databases.configs, options=laws.OPTIONS
)
def test_any_number_of_threads_gives_the_same_bytes(specs, config, options):
  with laws.scratch() as directory:
    databases.write_database(directory / "source", specs, config)
    results = []
    for num_threads in (1, 2, 5):
      listing = _native.list_database(
        directory / "source", num_threads=num_threads
      )
      renames = [rekeying.rename(e, e.name + "x") for e in listing.arrays()]
      plan = _native.plan_rekey(
        [listing],
        moves=[move for move, _ in renames],
        literals=[literal for _, literal in renames],
        drops=[],
        num_threads=num_threads,
      )
      target = directory / f"target{num_threads}"
      rekeying.link_and_apply(
        plan, [listing], target, num_threads=num_threads, **options
      )
      results.append(file_bytes(target))
    assert results[0] == results[1] == results[2]


@laws.SETTINGS
@hypothesis.given(
  values=st.dictionaries(
    st.binary(max_size=40), st.binary(max_size=60), max_size=300
  ),
  options=laws.OPTIONS,
)
def test_any_keys_and_values(values, options):
  options = options | {"max_decoded_node_bytes": 400}
  with laws.scratch() as directory:
    plan = _native.plan_rekey(
      [], moves=[], literals=list(values.items()), drops=[]
    )
    rekeying.link_and_apply(plan, [], directory / "target", **options)
    assert oracle.read_all(directory / "target") == values
    assert oracle.dump_tree(directory / "target").keys == sorted(values)
    listing = _native.list_database(directory / "target")
    assert {key: listing.read(key) for key in values} == values


@laws.SETTINGS
@hypothesis.given(specs=databases.arrays(), config=databases.configs)
def test_the_oracle_accepts_what_tensorstore_writes(specs, config):
  with laws.scratch() as directory:
    databases.write_database(directory, specs, config)
    tree = oracle.dump_tree(directory)
    assert tree.keys == sorted(oracle.read_all(directory))
