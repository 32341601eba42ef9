"""Databases with numbered manifests, as TensorStore writes them."""

import re

import pytest

from relayout import _native, errors
from tests.native import oracle, rekeying

_METADATA = b'{"shape": [40], "chunks": [1]}'


def _write(directory, **config):
  """Writes values in as many versions; overwrites some and deletes others."""
  store = oracle.open_kvstore(directory, manifest_kind="numbered", **config)
  store.write(b"a/.zarray", _METADATA).result()
  for number in range(40):
    value = b"%d " % number * (number * 3)
    store.write(f"a/{number}".encode(), value).result()
  for number in range(0, 40, 7):
    store.write(f"a/{number}".encode(), b"changed").result()
  for number in range(1, 40, 11):
    store.delete_range(
      type(store).KeyRange(f"a/{number}".encode(), f"a/{number}\0".encode())
    ).result()


@pytest.fixture(
  params=[{}, {"version_tree_arity_log2": 1}, {"max_decoded_node_bytes": 200}],
  ids=["default", "deep version tree", "small nodes"],
)
def directory(request, tmp_path):
  path = tmp_path / "numbered"
  _write(path, **request.param)
  return path


def _numbered(directory):
  return sorted(
    path
    for path in directory.iterdir()
    if re.fullmatch(r"manifest\.[0-9a-f]{16}", path.name)
  )


def test_lists_what_tensorstore_lists(directory):
  assert len(_numbered(directory)) > 1
  values = oracle.read_all(directory)
  assert values[b"a/7"] == b"changed"
  assert b"a/12" not in values
  listing = _native.list_database(directory)
  assert listing.num_keys == len(values)
  for key, value in values.items():
    assert listing.read(key) == value
    assert listing.num_value_bytes(key) == len(value)
  [entry] = listing.arrays()
  assert entry.num_chunks == len(values) - 1
  with pytest.raises(KeyError):
    listing.read(b"a/12")


def test_the_newest_manifest_counts(directory):
  before = _native.list_database(directory)
  oracle.open_kvstore(directory).write(b"a/12", b"back").result()
  after = _native.list_database(directory)
  assert after.generation == before.generation + 1
  assert after.num_keys == before.num_keys + 1
  assert after.read(b"a/12") == b"back"


def test_older_manifests_are_not_needed(directory):
  values = oracle.read_all(directory)
  for path in _numbered(directory)[:-1]:
    path.unlink()
  assert oracle.read_all(directory) == values
  listing = _native.list_database(directory)
  assert {key: listing.read(key) for key in values} == values
  assert listing.num_keys == len(values)


def test_without_numbered_manifests_it_is_empty(directory):
  """The manifest without a number only says how the database is kept."""
  for path in _numbered(directory):
    path.unlink()
  assert oracle.read_all(directory) == {}
  assert _native.list_database(directory).num_keys == 0


def test_a_damaged_manifest_is_not_passed_over(directory):
  *_, newest = _numbered(directory)
  data = bytearray(newest.read_bytes())
  data[len(data) // 2] ^= 1
  newest.write_bytes(data)
  with pytest.raises(errors.CorruptCheckpointError, match=newest.name):
    _native.list_database(directory)


def test_rekeys_into_a_single_manifest(directory, tmp_path):
  listing = _native.list_database(directory)
  plan = rekeying.plan_renames(listing, lambda name: f"new.{name}")
  rekeying.link_and_apply(plan, [listing], tmp_path / "t")
  assert oracle.read_all(tmp_path / "t") == {
    b"new." + key: value for key, value in oracle.read_all(directory).items()
  }
  assert not _numbered(tmp_path / "t")
