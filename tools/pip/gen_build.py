"""Writes the BUILD file of a pip repository: a py_library per distribution.

A library's data are the top-level entries of its distribution and of all that
it needs, each a single label, so that a test has tens of runfiles symlinks and
not tens of thousands. A directory that several distributions install into (the
namespace package `google`, say) is split into its children, as deep as needed.

A repository may lie on others (`--base`): what those have is not installed
again, and a library here depends on theirs. So a distribution is in one
repository only, whatever mixture of them a target depends on.

Bazel does not look into such a directory for changes. So each library also has
a stamp, a file with a hash of what the RECORDs of its distributions say: a
change to the lock file reruns those tests, and only those, whose packages it
changed.
"""

import argparse
import collections
import hashlib
import pathlib
import re
import sys
from importlib import metadata

SKIP = {"__pycache__", ".."}


def normalize(name):
  return re.sub(r"[-_.]+", "_", name).lower()


def packaging_classes(sites):
  sys.path += [str(site) for site in sites]
  try:
    from packaging.requirements import Requirement
  except ImportError:
    from pip._vendor.packaging.requirements import (
      Requirement,
    )
  return Requirement


def distributions(site):
  found = metadata.distributions(path=[str(site)])
  return {normalize(d.metadata["Name"]): d for d in found}


def needed(dist, extras, requirement_class):
  """Yields (name, extras, specifier) of each need of dist on this machine."""
  for line in dist.requires or []:
    req = requirement_class(line)
    if req.marker is None or any(
      req.marker.evaluate({"extra": e}) for e in extras
    ):
      yield normalize(req.name), frozenset(req.extras), req.specifier


def closure(name, dists, unstated, requirement_class):
  """Returns the names of all distributions that `name` needs, and itself."""
  seen, todo = set(), [(name, frozenset({""}))]
  while todo:
    item = todo.pop()
    if item in seen or item[0] not in dists:
      continue
    seen.add(item)
    for other, extras, _ in needed(dists[item[0]], item[1], requirement_class):
      todo.append((other, extras | {""}))
    todo += [(other, frozenset({""})) for other in unstated[item[0]]]
  return {n for n, _ in seen}


def conflicts(names, dists, requirement_class):
  """Yields a line for each requirement that an installed version breaks."""
  for name in sorted(names):
    for other, _, specifier in needed(dists[name], {""}, requirement_class):
      if other in dists:
        version = dists[other].version
        if not specifier.contains(version, prereleases=True):
          yield f"{name} needs {other}{specifier}, and {version} is locked"


def entries(site, dists):
  """Maps each distribution to its entries: paths below site."""
  files = {
    name: [pathlib.PurePosixPath(str(f)).parts for f in dist.files or []]
    for name, dist in dists.items()
  }
  owners = collections.defaultdict(set)
  for name, paths in files.items():
    for parts in paths:
      for n in range(1, len(parts) + 1):
        owners[parts[:n]].add(name)
  result = {}
  for name, paths in files.items():
    mine = set()
    for parts in paths:
      if parts[0] in SKIP:
        continue
      n = 1
      while n < len(parts) and len(owners[parts[:n]]) > 1:
        n += 1
      entry = site.joinpath(*parts[:n])
      if not entry.exists():
        continue
      mine.add("/".join(parts[:n]))
      if entry.suffix == ".py":
        cache = entry.parent / "__pycache__"
        mine.update(
          pyc.relative_to(site).as_posix()
          for pyc in cache.glob(entry.stem + ".*.pyc")
        )
    result[name] = mine
  return result


def digest(names, dists):
  h = hashlib.sha256()
  for name in sorted(names):
    h.update(f"{name} {dists[name].read_text('RECORD')}\n".encode())
  return h.hexdigest()


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--site", type=pathlib.Path, required=True)
  parser.add_argument(
    "--base", action="append", default=[], help="repository=site-packages"
  )
  parser.add_argument(
    "--needs",
    action="append",
    default=[],
    help="name=other: a requirement that its metadata does not state",
  )
  parser.add_argument("--extra", type=pathlib.Path)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  args = parser.parse_args()

  # A BUILD file inside a wheel would make a Bazel package of its directory.
  for pattern in ("BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel"):
    for path in args.site.rglob(pattern):
      if path.is_file():
        path.unlink()

  own_dists = distributions(args.site)
  dists, label = dict(own_dists), {}
  sites = [args.site]
  for item in args.base:
    repository, _, site = item.partition("=")
    sites.append(pathlib.Path(site))
    for name, dist in distributions(sites[-1]).items():
      if name in dists:
        sys.exit(f"{name} is in @{repository} already; lock again")
      dists[name] = dist
      label[name] = f"@{repository}//:{name}"
  requirement_class = packaging_classes(sites)
  own = entries(args.site, own_dists)

  found = list(conflicts(own_dists, dists, requirement_class))
  if found:
    sys.exit("\n".join(found))

  unstated = collections.defaultdict(list)
  for item in args.needs:
    name, _, other = item.partition("=")
    others = own_dists if other == "*" else [normalize(other)]
    unstated[normalize(name)] += others

  stamps = args.out.parent / "stamps"
  stamps.mkdir(exist_ok=True)
  lines = ['package(default_visibility = ["//visibility:public"])', ""]
  for name in sorted(own_dists):
    names = closure(name, dists, unstated, requirement_class)
    mine = names & own_dists.keys()
    paths = sorted(set().union(*(own[n] for n in mine)))
    (stamps / name).write_text(digest(mine, dists) + "\n")
    lines += ["py_library(", f'    name = "{name}",', "    data = ["]
    lines += [f'        "stamps/{name}",']
    lines += [f'        "{args.site.name}/{p}",' for p in paths]
    lines += ["    ],", f'    imports = ["{args.site.name}"],', "    deps = ["]
    lines += [f'        "{label[n]}",' for n in sorted(names & label.keys())]
    lines += ["    ],", ")", ""]
  if args.extra:
    lines.append(args.extra.read_text())
  args.out.write_text("\n".join(lines))


main()
