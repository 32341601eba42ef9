"""Checks the C++ targets and includes against the layers of ARCHITECTURE.md.

bazelw query --output=xml 'kind("cc_.* rule", //cc/...)' | check_deps.py
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ET

# A package uses those of earlier rows; those of one row do not use each other.
LAYERS = [
  ["base"],
  ["io"],
  ["ocdbt", "zarr"],
  ["rekey", "rechunk"],
  ["bindings"],
]
LEVEL = {name: n for n, row in enumerate(LAYERS) for name in row}

# Whatever Bazel calls them: what only the bindings may use.
PYTHON_ONLY_IN = "bindings"
PYTHON_LABELS = re.compile(r"^@(python//|pip_core//:pybind11_headers)")
PYTHON_INCLUDE = re.compile(r"(pybind11/.*|Python\.h)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def complaint(user, used, *, test):
  """Returns why package `user` may not use package `used`, or None."""
  if used == user:
    return None
  if used == "testing":
    return None if test else "only tests use cc/testing"
  for name in (user, used):
    if name not in LEVEL and name != "testing":
      return f"cc/{name} is in no layer; add it to tools/check_deps.py"
  if user == "testing":
    return "cc/testing uses no other package"
  if LEVEL[used] < LEVEL[user]:
    return None
  return f"cc/{user} may not use cc/{used}"


def package(label):
  """Returns the first directory below cc/ of a label, or None."""
  match = re.match(r"^//cc/([^/:]+)", label)
  return match and match[1]


def check_targets(xml):
  """Yields a line for each dependency of a target that breaks the rules."""
  for rule in ET.fromstring(xml).iter("rule"):
    name, user = rule.get("name"), package(rule.get("name"))
    testonly = rule.find("boolean[@name='testonly'][@value='true']")
    test = rule.get("class") == "cc_test" or testonly is not None
    for label in rule.findall("list[@name='deps']/label"):
      used = label.get("value")
      if PYTHON_LABELS.match(used) and user != PYTHON_ONLY_IN:
        yield f"{name}: only cc/{PYTHON_ONLY_IN} may depend on {used}"
      if package(used):
        why = complaint(user, package(used), test=test)
        if why:
          yield f"{name} depends on {used}: {why}"


def check_includes(root):
  """Yields a line for each #include below root/cc that breaks the rules."""
  for path in sorted((root / "cc").rglob("*")):
    if path.suffix not in {".h", ".cc"}:
      continue
    shown = path.relative_to(root)
    user = shown.parts[1]
    for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
      if PYTHON_INCLUDE.match(included) and user != PYTHON_ONLY_IN:
        yield f"{shown}: only cc/{PYTHON_ONLY_IN} includes {included}"
      if included.startswith("cc/"):
        # What only tests may use, the targets tell.
        why = complaint(user, included.split("/")[1], test=True)
        if why:
          yield f"{shown} includes {included}: {why}"


def main():
  root = pathlib.Path(__file__).resolve().parent.parent
  lines = [*check_targets(sys.stdin.read()), *check_includes(root)]
  print("\n".join(lines) or "the C++ layers hold")
  sys.exit(1 if lines else 0)


if __name__ == "__main__":
  main()
