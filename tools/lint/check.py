"""Runs the linters; see tools/check, which starts it."""

import argparse
import difflib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import clang_format
import clang_tidy

from tools import check_deps

ROOT = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
STUB = ROOT / "python/relayout/_native.pyi"
PYTHON = [sys.executable, "-P", "-s", "-B"]
CPP_SUFFIXES = (".h", ".cc")


class CheckError(Exception):
  """A check that failed; the message is what to show."""


def run(*command, **environment):
  """Runs a command in the workspace; returns its standard output."""
  env = os.environ | {k: str(v) for k, v in environment.items()}
  result = subprocess.run(
    [str(word) for word in command],
    cwd=ROOT,
    env=env,
    capture_output=True,
    text=True,
    check=False,
  )
  if result.returncode != 0:
    raise CheckError((result.stdout + result.stderr).strip())
  return result.stdout


def run_module(module, *arguments, **environment):
  return run(*PYTHON, "-m", module, *arguments, **environment)


def bazel(*arguments):
  """Runs Bazel; the lock that `bazel run` held is free again by now."""
  return run(ROOT / "bazelw", *arguments)


def python_path(*extra):
  return os.pathsep.join([*map(str, extra), *filter(None, sys.path)])


def cpp_files():
  files = sorted((ROOT / "cc").rglob("*"))
  return [str(f.relative_to(ROOT)) for f in files if f.suffix in CPP_SUFFIXES]


def ruff_format(fix):
  run_module("ruff", "format", "--quiet", *([] if fix else ["--diff"]), ".")


def ruff(fix):
  run_module(
    "ruff", "check", "--output-format=concise", *(["--fix"] * fix), "."
  )


def mypy(_):
  if not (ROOT / "python").exists():
    return
  run_module("mypy", "python/relayout", PYTHONPATH=python_path())


def import_linter(_):
  if not (ROOT / "python").exists():
    return
  code = "from importlinter.cli import lint_imports_command as main; main()"
  tests = shutil.ignore_patterns("*_test.py", "conftest.py", "__pycache__")
  with tempfile.TemporaryDirectory() as scratch:
    # A test may use any layer.
    shutil.copytree(
      ROOT / "python/relayout", f"{scratch}/relayout", ignore=tests
    )
    try:
      path = python_path(scratch)
      run(*PYTHON, "-c", code, "--no-cache", PYTHONPATH=path)
    except CheckError as error:
      # The banner and the contracts that hold come first.
      raise CheckError(str(error).rpartition("Broken contracts")[2]) from error


def format_cpp(fix):
  tool = clang_format.get_executable("clang-format")
  mode = ["-i"] if fix else ["--dry-run", "-Werror"]
  files = cpp_files()
  if not files:
    return
  try:
    run(tool, "--style=file", *mode, *files)
  except CheckError as error:
    names = {line.split(":")[0] for line in str(error).splitlines()}
    found = sorted(names.intersection(files))
    raise CheckError("\n".join(found) or str(error)) from error


def spelling(_):
  run_module("codespell_lib", ".")


def cpp_layers(_):
  xml = bazel("query", "--output=xml", 'kind("cc_.* rule", //cc/...)')
  lines = [*check_deps.check_targets(xml), *check_deps.check_includes(ROOT)]
  if lines:
    raise CheckError("\n".join(lines))


def native_stub(fix):
  """The stub of the extension module is what pybind11-stubgen writes."""
  target = "//python/relayout:_native"
  try:
    bazel("query", target)
  except CheckError:
    return
  bazel("build", target)
  built = pathlib.Path(bazel("info", "bazel-bin").strip())
  with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    package = scratch / "path/relayout"
    package.mkdir(parents=True)
    # Beside the built module, the rest of the package from the sources.
    (package / "__init__.py").write_text(
      f"__path__.append({str(STUB.parent)!r})\n"
    )
    shutil.copy(built / "python/relayout/_native.so", package)
    run_module(
      "pybind11_stubgen",
      "relayout._native",
      f"--output-dir={scratch}",
      "--exit-code",
      PYTHONPATH=python_path(scratch / "path"),
    )
    written = scratch / "relayout/_native.pyi"
    config = "--config=pyproject.toml"
    run_module("ruff", "check", "--fix-only", "--quiet", config, written)
    run_module("ruff", "format", "--quiet", config, written)
    want = written.read_text()
  have = STUB.read_text() if STUB.exists() else ""
  if have == want:
    return
  if fix:
    STUB.write_text(want)
    return
  diff = difflib.unified_diff(
    have.splitlines(), want.splitlines(), "committed", "generated", n=1
  )
  raise CheckError("\n".join(diff) + "\ntools/check --fix writes it anew")


def tidy(_):
  """clang-tidy on the C++ files that differ from HEAD; slow."""
  files = run("git", "ls-files", "-o", "--exclude-standard", "cc").split()
  files += run("git", "diff", "--name-only", "HEAD", "--", "cc").split()
  external = pathlib.Path(bazel("info", "output_base").strip()) / "external"
  flags = ["-std=c++23", "-xc++", "-I."]
  for path in (
    "zstd/zstd",
    "python/include",
    "pip_core/site-packages/pybind11/include",
  ):
    flags += ["-isystem", str(external / path)]
  tool = str(pathlib.Path(clang_tidy.__file__).parent / "data/bin/clang-tidy")
  for file in files:
    if file.endswith(".cc") and (ROOT / file).exists():
      run(tool, "--quiet", file, "--", *flags)


CHECKS = {
  "ruff": ruff,
  "ruff-format": ruff_format,
  "mypy": mypy,
  "import-linter": import_linter,
  "clang-format": format_cpp,
  "codespell": spelling,
  "cpp-layers": cpp_layers,
  "native-stub": native_stub,
  "clang-tidy": tidy,
}
# Slow, and of use on one's own changes: only when asked for by name.
BY_NAME_ONLY = {"clang-tidy"}


def main():
  parser = argparse.ArgumentParser(prog="tools/check", description=__doc__)
  parser.add_argument("names", nargs="*", metavar="CHECK")
  parser.add_argument("--fix", action="store_true", help="repair what it can")
  parser.add_argument("--list", action="store_true", help="name the checks")
  args = parser.parse_args()
  if args.list:
    print("\n".join(CHECKS))
    return
  if unknown := set(args.names) - CHECKS.keys():
    parser.error(f"no such check: {', '.join(sorted(unknown))}")
  failed = []
  for name in args.names or [n for n in CHECKS if n not in BY_NAME_ONLY]:
    try:
      CHECKS[name](args.fix)
    except CheckError as error:
      failed.append(name)
      print(f"FAIL {name}\n{error}\n", flush=True)
    else:
      print(f"ok   {name}", flush=True)
  if failed:
    sys.exit(f"tools/check: {', '.join(failed)}")


if __name__ == "__main__":
  main()
