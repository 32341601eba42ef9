"""Databases whose data files and ranges are elsewhere, or nowhere: refused."""

import dataclasses
import os

import pytest

from tests.corrupt import ocdbt_encoder as ocdbt
from tests.corrupt import small_trees
from tests.corrupt.ocdbt_encoder import Ref, Root


@pytest.mark.parametrize(
  "path",
  [
    "../../../secret",
    "d/../../../../secret",
    "/etc/passwd",
    "d//data",
    "./d/data",
    "d/./data",
    "d/data/",
    "",
    b"d/da\0ta",
    b"\xff\xfe",
    "d",
    ".",
    "..",
    "d/" + "x" * 300,
    "a/" * 2000 + "b",
    "d/missing",
  ],
)
def test_paths_that_leave_the_checkpoint_or_lead_nowhere(attack, path):
  (attack.root.parent / "secret").write_bytes(bytes(100))
  entries = [(small_trees.PLAIN[0]), (small_trees.PLAIN[1][0], Ref(0, 24))]
  small_trees.write(attack, ocdbt.leaf(entries, files=[path]))
  (attack.root.parent / "secret").unlink()
  attack.refused("model_params")


@pytest.mark.parametrize("base", [1, 3, 9, 10**6])
def test_base_paths_that_leave_the_checkpoint(attack, base):
  entries = [(small_trees.PLAIN[0]), (small_trees.PLAIN[1][0], Ref(0, 24))]
  small_trees.write(
    attack, ocdbt.leaf(entries, files=["../secret"], bases=[base])
  )
  attack.refused("model_params")


def test_a_node_in_a_file_outside(attack):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(small_trees.PLAIN))
  (attack.root / "4" / "outside").write_bytes(bytes(1000))
  root = Root(at.offset, at.length, 2)
  database.write(ocdbt.manifest([root], files=["../outside"]))
  attack.refused("../outside")


def test_path_prefixes_longer_than_the_path_before(attack):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(small_trees.PLAIN))
  table = ocdbt.varints([2, 9, 6, 1, 0, 0]) + b"d/datax"
  body = ocdbt.config() + table
  body += ocdbt.versions([Root(at.offset, at.length, 2)]) + b"\0"
  database.write(body)
  attack.refused("manifest.ocdbt", "prefix")


@pytest.mark.parametrize("kind", ["file", "directory", "absolute", "circle"])
def test_links_that_leave_the_checkpoint(attack, kind):
  entries = [(small_trees.PLAIN[0]), (small_trees.PLAIN[1][0], Ref(0, 24))]
  small_trees.write(attack, ocdbt.leaf(entries, files=["e/data"]))
  outside = attack.root / "outside"
  outside.mkdir()
  (outside / "data").write_bytes(bytes(100))
  link = attack.item / "e"
  if kind == "directory":
    link.symlink_to("../../outside")
  elif kind == "absolute":
    link.symlink_to(outside.resolve())
  elif kind == "circle":
    link.symlink_to("e")
  else:
    link.mkdir()
    (link / "data").symlink_to("../../../outside/data")
  attack.refused("e/data")


@pytest.mark.parametrize("name", ["manifest.ocdbt", "d"])
def test_the_database_itself_is_a_link_outside(attack, name):
  """Whoever unpacks a checkpoint may find a link in place of any file."""
  small_trees.write(attack, ocdbt.leaf(small_trees.PLAIN))
  outside = attack.root / "outside"
  (attack.item / name).rename(outside)
  (attack.item / name).symlink_to(f"../../{outside.name}")
  attack.refused("link")


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_a_data_file_that_is_no_file(attack, kind):
  entries = [(small_trees.PLAIN[0]), (small_trees.PLAIN[1][0], Ref(0, 24))]
  small_trees.write(attack, ocdbt.leaf(entries, files=["d/x"]))
  path = attack.item / "d" / "x"
  if kind == "pipe":
    os.mkfifo(path)
  else:
    path.mkdir()
  attack.refused("d/x")


@pytest.mark.parametrize(
  ("offset", "length"),
  [
    (0, 10**6),
    (10**6, 24),
    (0, 2**63),
    (2**63, 24),
    (2**64 - 1, 24),
    (2**64 - 24, 24),
    (24, 2**64 - 24),
    (2**64 - 1, 2**64 - 1),
  ],
)
def test_values_beyond_their_file(attack, offset, length):
  entries = [
    (small_trees.PLAIN[0]),
    (small_trees.PLAIN[1][0], Ref(offset, length)),
  ]
  small_trees.write(attack, ocdbt.leaf(entries))
  attack.refused("d/data", "a.value/0.0")


def test_metadata_beyond_its_file(attack):
  entries = [(small_trees.PLAIN[0][0], Ref(0, 10**6)), small_trees.PLAIN[1]]
  small_trees.write(attack, ocdbt.leaf(entries))
  attack.refused("d/data", "a.value/.zarray")


def test_huge_metadata(attack):
  """Array metadata of a gigabyte, in a sparse file."""
  entries = [
    (small_trees.PLAIN[0][0], Ref(0, 1 << 30, file=0)),
    small_trees.PLAIN[1],
  ]
  small_trees.write(attack, ocdbt.leaf(entries, files=["d/big"]))
  with (attack.item / "d" / "big").open("wb") as file:
    file.truncate(1 << 30)
  attack.refused("a.value")


@pytest.mark.parametrize(
  "change",
  [
    {"offset": 10**6},
    {"length": 10**6},
    {"length": 2**63},
    {"offset": 2**64 - 1},
    {"length": 2**64 - 1},
    {"length": 0},
    {"length": 17},
    {"offset": 1},
    {"num_keys": 0},
    {"num_keys": 1},
    {"num_keys": 2**40},
    {"num_keys": 2**64 - 1},
    {"height": 1},
    {"height": 255},
    {"generation": 0},
  ],
)
def test_roots_that_lie(attack, change):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(small_trees.PLAIN))
  root = dataclasses.replace(Root(at.offset, at.length, 2), **change)
  database.write(ocdbt.manifest([root]))
  attack.refused("model_params")


def test_a_root_in_no_file(attack):
  database = ocdbt.Database(attack.item)
  at = database.node(ocdbt.leaf(small_trees.PLAIN))
  database.write(ocdbt.manifest([Root(at.offset, at.length, 2, file=7)]))
  attack.refused("manifest.ocdbt")


@pytest.mark.parametrize(
  ("offset", "length"), [(ocdbt.MISSING, 5), (5, ocdbt.MISSING)]
)
def test_half_a_missing_root(attack, offset, length):
  database = ocdbt.Database(attack.item)
  database.node(ocdbt.leaf(small_trees.PLAIN))
  database.write(ocdbt.manifest([Root(offset, length, 0)]))
  attack.refused("model_params")


def test_an_empty_database(attack):
  database = ocdbt.Database(attack.item)
  root = Root(ocdbt.MISSING, ocdbt.MISSING, 0, tree_bytes=0)
  database.write(ocdbt.manifest([root]))
  attack.refused("model_params")
