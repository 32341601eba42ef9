import json

import pytest

from relayout.errors import CorruptCheckpointError
from relayout.metadata import tree_metadata
from relayout.metadata.tree_metadata import TreeLeaf, TreeMetadata
from relayout.tree.key_path import KeyKind, TypedPath
from tests.support import golden


def _entry(*keys, **value):
  value = {"value_type": "jax.Array", "skip_deserialize": False} | value
  return {
    "key_metadata": [{"key": key, "key_type": kind} for key, kind in keys],
    "value_metadata": value,
  }


def _parse(tree, **others):
  data = json.dumps({"tree_metadata": tree, **others}).encode()
  return tree_metadata.parse_tree_metadata(data, "_METADATA")


@pytest.mark.parametrize("name", golden.TUNIX + golden.MAXTEXT)
def test_golden_files_come_back_to_the_byte(name):
  paths = list(golden.checkpoints(name).rglob(tree_metadata.FILE_NAME))
  assert paths
  for path in paths:
    data = path.read_bytes()
    parsed = tree_metadata.parse_tree_metadata(data, str(path))
    assert tree_metadata.tree_metadata_bytes(parsed) == data


def test_golden_list_of_optimizer_states():
  path = golden.checkpoints("pretrain_scan") / "4" / "items" / "_METADATA"
  parsed = tree_metadata.parse_tree_metadata(path.read_bytes(), str(path))
  leaves = {leaf.path.names: leaf for leaf in parsed.leaves}
  count = leaves["opt_state", "2", "count"]
  assert count.path.kinds == (KeyKind.DICT, KeyKind.SEQUENCE, KeyKind.DICT)
  assert count.write_shape == ()
  assert leaves["opt_state", "1"].is_empty
  assert parsed.use_ocdbt
  assert parsed.use_zarr3


def test_new_metadata_has_orbax_layout():
  leaf = TreeLeaf(TypedPath.of_dicts(("step",)), "jax.Array", False, ())
  data = tree_metadata.tree_metadata_bytes(TreeMetadata((leaf,)))
  assert data == (
    b'{"tree_metadata": {"(\'step\',)": {"key_metadata": [{"key": "step",'
    b' "key_type": 2}], "value_metadata": {"value_type": "jax.Array",'
    b' "skip_deserialize": false, "write_shape": []}}}, "use_ocdbt": true,'
    b' "use_zarr3": false, "store_array_data_equal_to_fill_value": true,'
    b' "custom_metadata": null}'
  )


def test_old_files_may_lack_fields():
  parsed = _parse({"('a', 'b')": {"value_metadata": {"value_type": "scalar"}}})
  (leaf,) = parsed.leaves
  assert leaf.path == TypedPath.of_dicts(("a", "b"))
  assert leaf.write_shape is None
  assert not leaf.skip_deserialize
  assert parsed.use_zarr3 is None
  assert tree_metadata.parse_tree_metadata(b"{}", "f").leaves is None


def test_unknown_fields_are_kept():
  parsed = _parse({}, value_metadata_tree="text", custom_metadata={"a": 1})
  written = json.loads(tree_metadata.tree_metadata_bytes(parsed))
  assert written["value_metadata_tree"] == "text"
  assert written["custom_metadata"] == {"a": 1}


@pytest.mark.parametrize("kind", ["None", "Dict", "List", "Tuple"])
def test_empty_leaves(kind):
  parsed = _parse({"x": _entry(("a", 2), value_type=kind)})
  assert parsed.leaves[0].is_empty


@pytest.mark.parametrize(
  ("entry", "message"),
  [
    (3, "expected an object"),
    ({}, "key_metadata, or a key that is a tuple"),
    (_entry(("a", 3)), "key_type: expected an integer from 1 to 2"),
    (_entry(("a", 1)), "expected an index"),
    (_entry(("-1", 1)), "expected an index"),
    (_entry(([], 2)), "key: expected a string"),
    (_entry((-1, 2)), "key: expected a string"),
    (_entry(("a", 2), value_type=None), "value_type: expected a string"),
    (_entry(("a", 2), write_shape=[-1]), "write_shape: 0: expected an integer"),
    (_entry(("a", 2), write_shape=4), "expected an array of integers"),
    (_entry(("a", 2), skip_deserialize=0), "expected true or false"),
    ({"key_metadata": 3, "value_metadata": {}}, "expected an array of keys"),
    ({"key_metadata": [3], "value_metadata": {}}, "expected an object"),
  ],
)
def test_damaged_entries_are_named(entry, message):
  with pytest.raises(CorruptCheckpointError, match=message) as caught:
    _parse({"hostile": entry})
  assert "_METADATA: tree_metadata: hostile" in str(caught.value)


def test_two_paths_of_one_name_are_refused():
  with pytest.raises(CorruptCheckpointError, match=r"both name .* 'a\.b'"):
    _parse({"1": _entry(("a", 2), ("b", 2)), "2": _entry(("a.b", 2))})


def test_wrong_flag_is_named():
  with pytest.raises(CorruptCheckpointError, match="use_zarr3: expected true"):
    _parse({}, use_zarr3="yes")


@pytest.mark.parametrize(
  "key", ["(" * 5000, "('a'", "[1, 2]", "('a', 3)", "x" * 100_000, "\x00"]
)
def test_keys_that_are_no_tuple_are_refused(key):
  with pytest.raises(CorruptCheckpointError, match="tuple of names"):
    _parse({key: {"value_metadata": {"value_type": "scalar"}}})
