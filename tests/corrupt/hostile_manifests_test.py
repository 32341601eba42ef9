"""Manifests that break the rules of OCDBT: refused in words, never a crash."""

import dataclasses

import pytest

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt import small_trees
from tests.corrupt.ocdbt_encoder import Root


def _plain_root(database):
  at = database.node(ocdbt.leaf(small_trees.PLAIN))
  return Root(at.offset, at.length, 2)


@pytest.mark.parametrize(
  "fields",
  [
    {"kind": 2},
    {"kind": 127},
    {"kind": 2**63},
    {"arity": 0},
    {"arity": 17},
    {"arity": 64},
    {"arity": 255},
    {"max_node": 2**40},
    {"max_inline": 2**63},
    {"compression": b"\2"},
    {"compression": b"\1\xff\xff\xff\x7f"},
    {"compression": b"\1\0\0\0\x80"},
    {"uuid": b"short"},
  ],
)
def test_configurations_that_lie(attack, fields):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  database.write(ocdbt.manifest([root], header=ocdbt.config(**fields)))
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize(
  "fields", [{"max_node": 0}, {"max_node": 1}, {"max_inline": 0}]
)
def test_limits_that_no_node_can_obey(attack, fields):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  database.write(ocdbt.manifest([root], header=ocdbt.config(**fields)))
  attack.refused_or_harmless("model_params")


@pytest.mark.parametrize(
  "generations", [(), (0,), (1, 1), (2, 1), (1, 17), (16, 17), range(1, 18)]
)
def test_generations_that_lie(attack, generations):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  roots = [dataclasses.replace(root, generation=g) for g in generations]
  database.write(ocdbt.manifest(roots))
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize("count", [2**16, 2**40, 2**64 - 1])
@pytest.mark.parametrize("what", ["versions", "nodes"])
def test_counts_of_versions_that_lie(attack, count, what):
  database = ocdbt.Database(attack.item)
  root = _plain_root(database)
  body = ocdbt.config() + ocdbt.file_table([ocdbt.DATA])
  if what == "versions":
    body += ocdbt.versions([root], count=count) + ocdbt.version_nodes([])
  else:
    body += ocdbt.versions([root]) + ocdbt.version_nodes([], count=count)
  database.write(body)
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize(
  "change",
  [
    {"height": 0},
    {"height": 16},
    {"height": 255},
    {"generation": 0},
    {"generation": 17},
    {"generation": 2**63},
    {"file": 3},
  ],
)
def test_version_nodes_that_lie(attack, change):
  database = ocdbt.Database(attack.item)
  root = dataclasses.replace(_plain_root(database), generation=17)
  node = ocdbt.VersionNode(16, 0, 50, height=1, num_generations=16)
  node = dataclasses.replace(node, **change)
  database.write(ocdbt.manifest([root], nodes=[node]))
  attack.refused("manifest.ocdbt")


def test_older_versions_are_not_read(attack):
  """Whatever the version tree holds, the newest version stands apart."""
  database = ocdbt.Database(attack.item)
  root = dataclasses.replace(_plain_root(database), generation=17)
  node = ocdbt.VersionNode(16, 2**40, 2**40, height=1, num_generations=16)
  database.write(ocdbt.manifest([root], nodes=[node]))
  attack.refused_or_harmless("model_params")


def _numbered(attack, name, header=None, generation=1):
  """Writes a manifest of the numbered kind and the one it stands for."""
  database = ocdbt.Database(attack.item)
  root = dataclasses.replace(_plain_root(database), generation=generation)
  database.write(ocdbt.manifest([root], header=header))
  (attack.item / "manifest.ocdbt").rename(attack.item / name)
  top = ocdbt.record(ocdbt.MANIFEST, ocdbt.config(kind=1))
  (attack.item / "manifest.ocdbt").write_bytes(top)


def test_a_numbered_manifest_is_fine(attack):
  _numbered(attack, "manifest.0000000000000001")
  attack.harmless()


@pytest.mark.parametrize(
  "fields",
  [
    {"header": ocdbt.config(uuid=b"v" * 16)},
    {"header": ocdbt.config(max_inline=5)},
    {"header": ocdbt.config(kind=1)},
    {"generation": 2},
  ],
)
def test_numbered_manifests_that_lie(attack, fields):
  name = "manifest.0000000000000001"
  _numbered(attack, name, **fields)
  attack.refused(name)


def test_a_numbered_manifest_that_is_missing(attack):
  _numbered(attack, "elsewhere")
  attack.refused("model_params")


def test_a_numbered_manifest_that_stands_for_itself(attack):
  name = "manifest.0000000000000001"
  _numbered(attack, name)
  (attack.item / name).unlink()
  (attack.item / name).symlink_to("manifest.ocdbt")
  attack.refused(name)


def test_an_endless_numbered_manifest(attack):
  name = "manifest.ffffffffffffffff"
  _numbered(attack, "elsewhere")
  with (attack.item / name).open("wb") as file:
    file.truncate(1 << 40)
  attack.refused(name)
