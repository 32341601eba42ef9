from tools import check_deps


def rule(name, *deps, kind="cc_library"):
  labels = "".join(f'<label value="{dep}"/>' for dep in deps)
  return (
    f'<query><rule class="{kind}" name="{name}">'
    f'<list name="deps">{labels}</list></rule></query>'
  )


def test_lower_layers_are_allowed():
  deps = ("//cc/ocdbt", "//cc/base:status", "@zstd//:zstd")
  xml = rule("//cc/rekey:plan", *deps)
  assert not list(check_deps.check_targets(xml))


def test_upward_and_sideways_are_not():
  for used in ("//cc/bindings:bindings", "//cc/zarr:codec"):
    (line,) = check_deps.check_targets(rule("//cc/ocdbt:varint", used))
    assert used in line


def test_pybind11_is_for_bindings_only():
  used = "@pip_core//:pybind11_headers"
  assert list(check_deps.check_targets(rule("//cc/io:io", used)))
  assert not list(check_deps.check_targets(rule("//cc/bindings:b", used)))


def test_only_tests_use_the_test_framework():
  used = "//cc/testing:test"
  assert list(check_deps.check_targets(rule("//cc/io:io", used)))
  test = rule("//cc/io:io_test", used, kind="cc_test")
  assert not list(check_deps.check_targets(test))


def test_unknown_package_is_named():
  (line,) = check_deps.check_targets(rule("//cc/new:new", "//cc/base"))
  assert "no layer" in line


def test_includes_follow_the_layers(tmp_path):
  (tmp_path / "cc/io").mkdir(parents=True)
  (tmp_path / "cc/io/a.h").write_text(
    '#include "cc/base/status.h"\n'
    '#include "cc/rekey/plan.h"\n'
    "#include <pybind11/pybind11.h>\n"
  )
  lines = list(check_deps.check_includes(tmp_path))
  assert len(lines) == 2
  assert "cc/rekey" in lines[0]
  assert "pybind11" in lines[1]
