from relayout.tree.key_path import KeyKind, TypedPath, dotted


def test_of_dicts_types_every_level():
  path = TypedPath.of_dicts(("params", "layers_0", "kernel"))
  assert path.names == ("params", "layers_0", "kernel")
  assert path.kinds == (KeyKind.DICT,) * 3


def test_dotted_joins_levels():
  assert dotted(("opt_state", "0", "count")) == "opt_state.0.count"
  assert dotted(()) == ""


def test_kinds_have_the_values_of_orbax():
  assert KeyKind.SEQUENCE == 1
  assert KeyKind.DICT == 2
