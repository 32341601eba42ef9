"""Rules for the Python of this repository."""

load("//tools/cc:defs.bzl", "RELAYOUT_COPTS")

_MAIN = "//tools/python:pytest_main.py"

# Sources below it are imported without it: python/relayout/cli is `relayout.cli`.
_ROOT = "python"

def _imports():
    """The `imports` that put _ROOT on sys.path, for a package below it; else none."""
    package = native.package_name()
    if package == _ROOT:
        return ["."]
    if package.startswith(_ROOT + "/"):
        return ["/".join([".."] * package[len(_ROOT):].count("/"))]
    return []

def relayout_py_library(name, **kwargs):
    """A py_library; below python/ it is importable as relayout.<...>."""
    native.py_library(
        name = name,
        imports = _imports(),
        srcs_version = "PY3",
        **kwargs
    )

def relayout_py_binary(name, **kwargs):
    """A py_binary; below python/ its sources are importable as relayout.<...>."""
    native.py_binary(
        name = name,
        imports = _imports(),
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )

def pytest_test(name, srcs, deps = [], args = [], size = "medium", **kwargs):
    """A py_test whose srcs run under pytest.

    Args:
      name: target name
      srcs: test files, each is handed to pytest; and conftest.py files, which are not
      deps: as of py_test
      args: more pytest arguments
      size: as of py_test; medium has 5 minutes
      **kwargs: passed to py_test
    """
    tests = [src for src in srcs if not src.endswith("conftest.py")]
    native.py_test(
        name = name,
        size = size,
        srcs = srcs + [_MAIN],
        main = _MAIN,
        args = ["$(rootpath %s)" % src for src in tests] + args,
        deps = deps + ["@pip_core//:pytest"],
        imports = _imports(),
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )

def cpu_py_test(name, **kwargs):
    """A pytest_test for the CPU; skipped under --config=tpu."""
    pytest_test(
        name = name,
        target_compatible_with = ["//tools/platforms:cpu"],
        **kwargs
    )

def e2e_py_test(name, tags = [], size = "enormous", **kwargs):
    """A cpu_py_test that trains; .ci/run names it, and `bazel test //...` leaves it out.

    Its packages, such as @pip_e2e//:maxtext, are fetched for it only.

    Args:
      name: target name
      tags: as of py_test
      size: as of py_test; enormous has 60 minutes
      **kwargs: passed to cpu_py_test
    """
    cpu_py_test(
        name = name,
        size = size,
        tags = tags + ["e2e", "manual"],
        **kwargs
    )

def tpu_py_test(name, deps = [], tags = [], size = "medium", **kwargs):
    """A pytest_test that needs a TPU; skipped unless --config=tpu."""
    pytest_test(
        name = name,
        size = size,
        # One process at a time can hold the chips, and it needs their device files.
        tags = tags + ["exclusive", "no-sandbox", "tpu"],
        target_compatible_with = ["//tools/platforms:tpu"],
        deps = deps + select({
            "//tools/platforms:is_tpu": ["@pip_tpu//:libtpu"],
            "//conditions:default": [],
        }),
        **kwargs
    )

def pybind_extension(name, srcs = [], deps = [], data = [], copts = [], linkopts = [], features = [], visibility = None, testonly = None, **kwargs):
    """A Python extension module, written with pybind11.

    Makes `<name>.so` (a cc_binary) and `<name>`, a py_library that carries it: depend on the
    latter. Below python/ it is importable as relayout.<package>.<name>.

    PYBIND11_MODULE may stand in srcs, or in a cc_library of deps that has alwayslink = True.

    Args:
      name: module name, as in PYBIND11_MODULE
      srcs: C++ sources
      deps: cc_library targets; linked statically
      data: other files of the py_library, such as its stub
      copts: more compiler options
      linkopts: more linker options
      features: toolchain features
      visibility: of the py_library
      testonly: of both targets
      **kwargs: passed to cc_binary
    """
    so = name + ".so"
    native.cc_binary(
        name = so,
        srcs = srcs,
        copts = RELAYOUT_COPTS + copts,
        features = features,
        # Only PyInit_* is exported: another extension's zstd in the process is not ours.
        linkopts = ["-Wl,--version-script=$(location //tools/python:pyinit.lds)"] + linkopts,
        linkshared = True,
        linkstatic = True,
        testonly = testonly,
        visibility = ["//visibility:private"],
        deps = deps + [
            "//tools/python:pyinit.lds",
            "@pip_core//:pybind11_headers",
            "@python//:headers",
        ],
        **kwargs
    )
    native.py_library(
        name = name,
        data = [so] + data,
        imports = _imports(),
        testonly = testonly,
        visibility = visibility,
    )
