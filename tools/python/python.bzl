"""@python: the interpreter of this build, found on this machine."""

_BUILD = """\
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

exports_files(["info.json"])

# A bare venv of the found interpreter: what its owner pip-installed is not visible in the build.
py_runtime(
    name = "runtime",
    interpreter_path = "{runner}",
    python_version = "PY3",
    stub_shebang = "#!{interpreter}",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)
"""

# Neither the script's own (source!) directory nor the user's packages on sys.path; no .pyc files
# written into the source tree or the external repositories.
_RUNNER = """\
#!/bin/sh
exec '{interpreter}' -P -s -B "$@"
"""

_INFO_BZL = """\
VERSION = "{version}"
ABI_TAG = "{abi_tag}"
EXT_SUFFIX = "{ext_suffix}"
PLATFORM = "{platform}"
INTERPRETER = "{interpreter}"
"""

_HELP = """

This build needs a CPython >= {minimum} with its headers (Python.h), and found none. Tried:
{tried}
Install one, for example with `uv python install {example}`, `pyenv install {example}` or your
system's package manager (python{example} and python{example}-dev), or name one:

    export {env}=/path/to/bin/python{example}
    ./bazelw sync --configure
"""

def _probe(rctx, candidate, minimum):
    """Returns (info, reason); exactly one of the two is None."""
    result = rctx.execute([candidate, "-I", rctx.path(rctx.attr._probe)], timeout = 30)
    if result.return_code != 0:
        lines = (result.stderr or result.stdout).strip().split("\n")
        return None, "does not run: " + lines[0]
    info = json.decode(result.stdout.strip())
    if info["hexversion"] < minimum:
        return None, "is Python " + info["version"]
    if info["problem"]:
        return None, "is Python {}, but {}".format(info["version"], info["problem"])
    return info, None

def _candidates(rctx):
    """Paths to try, best first; duplicates and missing files are for the caller to skip."""
    env = rctx.os.environ
    forced = env.get(rctx.attr.env, "")
    if forced:
        return [forced]
    names = ["python" + v for v in rctx.attr.versions] + ["python3"]
    found = [rctx.which(name) for name in names]
    home = env.get("HOME", "")
    root = env.get("PYENV_ROOT", home + "/.pyenv" if home else "")
    versions = rctx.path(root + "/versions") if root else None
    if versions and versions.exists:
        directories = versions.readdir()
        for v in rctx.attr.versions:
            matching = [d for d in directories if d.basename == v or d.basename.startswith(v + ".")]
            found += [d.get_child("bin").get_child("python3") for d in matching]
    uv = rctx.which("uv")
    if uv:
        for v in rctx.attr.versions:
            result = rctx.execute([uv, "python", "find", "--no-python-downloads", v], timeout = 30)
            if result.return_code == 0:
                found.append(rctx.path(result.stdout.strip()))
    return [str(path) for path in found if path != None and path.exists]

def _python_repository_impl(rctx):
    parts = rctx.attr.minimum.split(".")
    minimum = (int(parts[0]) << 24) + (int(parts[1]) << 16)
    tried = {}
    info = None
    for candidate in _candidates(rctx):
        if candidate in tried:
            continue
        info, reason = _probe(rctx, candidate, minimum)
        if info:
            break
        tried[candidate] = reason
    if not info:
        lines = ["  {}: {}".format(path, reason) for path, reason in tried.items()] or ["  (nothing)"]
        fail(_HELP.format(
            minimum = rctx.attr.minimum,
            example = rctx.attr.versions[0],
            env = rctx.attr.env,
            tried = "\n".join(lines),
        ))

    # The path names the interpreter, so that tests run again where another one is found.
    venv = rctx.path("{}-{}".format(info["version"], hash(info["executable"]) & 0xffffff))
    result = rctx.execute([info["executable"], "-I", "-m", "venv", "--without-pip", venv])
    if result.return_code != 0:
        fail("{} -m venv failed:\n{}{}".format(info["executable"], result.stdout, result.stderr))
    info["interpreter"] = str(venv) + "/bin/python3"
    info["runner"] = str(venv) + "/bin/python3-isolated"
    rctx.file(info["runner"], _RUNNER.format(**info), executable = True)

    rctx.symlink(info["include"], "include")
    rctx.file("info.json", json.encode(info) + "\n", executable = False)
    rctx.file("info.bzl", _INFO_BZL.format(**info), executable = False)
    rctx.file("BUILD", _BUILD.format(**info), executable = False)

python_repository = repository_rule(
    implementation = _python_repository_impl,
    attrs = {
        "env": attr.string(default = "RELAYOUT_PYTHON", doc = "Variable that names the interpreter."),
        "minimum": attr.string(default = "3.12"),
        "versions": attr.string_list(
            default = ["3.12", "3.13", "3.14"],
            doc = "Minor versions to look for, best first.",
        ),
        "_probe": attr.label(default = Label("//tools/python:probe.py"), allow_single_file = True),
    },
    configure = True,
    environ = ["RELAYOUT_PYTHON", "PYENV_ROOT"],
    local = True,
)
