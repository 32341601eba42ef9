"""Every recorded checkpoint, listed and re-keyed, against TensorStore."""

import os
import pathlib

import pytest

from relayout import _native
from tests.native import oracle, rekeying

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


def find_databases():
  """Yields the directories of databases, relative to that of the fixtures."""
  # Bazel puts links in the place of the fixtures, which rglob does not follow.
  for name, _, files in os.walk(GOLDEN, followlinks=True):
    directory = pathlib.Path(name)
    # These are parts of the database above them.
    is_part = directory.name.startswith("ocdbt.process_")
    if "manifest.ocdbt" in files and not is_part:
      yield directory.relative_to(GOLDEN).as_posix()


DATABASES = sorted(find_databases())


def test_there_are_databases():
  assert len(DATABASES) > 10


@pytest.fixture(params=DATABASES)
def directory(request):
  return GOLDEN / request.param


def test_lists_what_tensorstore_lists(directory):
  listing = _native.list_database(directory)
  values = oracle.read_all(directory)
  assert listing.num_keys == len(values)
  for key, value in values.items():
    assert listing.read(key) == value
    assert listing.num_value_bytes(key) == len(value)


def test_summarizes_arrays(directory):
  listing = _native.list_database(directory)
  values = oracle.read_all(directory)
  assert listing.stray_keys(1) == []
  num_keys = 0
  for entry in listing.arrays():
    prefix = f"{entry.name}/".encode()
    own = {k: v for k, v in values.items() if k.startswith(prefix)}
    assert own.pop(prefix + entry.metadata_key.encode()) == entry.metadata
    own.pop(prefix + b".zattrs", None)
    assert entry.num_chunks == len(own)
    assert entry.num_stored_bytes == sum(map(len, own.values()))
    num_keys += 1 + len(own)
  assert num_keys == listing.num_keys


def test_renames_and_renames_back(directory, tmp_path):
  source = _native.list_database(directory)
  values = oracle.read_all(directory)
  plan = rekeying.plan_renames(source, lambda name: f"new.{name}.x")
  renamed = tmp_path / "renamed"
  rekeying.link_and_apply(plan, [source], renamed, max_decoded_node_bytes=800)
  want = {}
  for key, value in values.items():
    name, rest = key.split(b"/", 1)
    want[b"new." + name + b".x/" + rest] = value
  assert oracle.read_all(renamed) == want
  assert oracle.dump_tree(renamed).keys == sorted(want)
  listing = _native.list_database(renamed)
  back = rekeying.plan_renames(
    listing, lambda name: name.removeprefix("new.").removesuffix(".x")
  )
  rekeying.link_and_apply(back, [listing], tmp_path / "back")
  assert oracle.read_all(tmp_path / "back") == values
