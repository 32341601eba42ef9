"""Names the machine that figures come from."""

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = ("orbax-checkpoint", "jax", "tensorstore", "numpy")


def describe(scratch: Path) -> str:
  """Returns lines of text about the machine, `scratch` and the packages."""
  return "\n".join(f"{label}: {value}" for label, value in _facts(scratch))


def load() -> str:
  """Returns the load average of the last minute."""
  return f"{os.getloadavg()[0]:.1f}"


def _facts(scratch: Path) -> Iterator[tuple[str, str]]:
  yield "processor", _processor()
  yield "memory", f"{_num_memory_bytes() / 2**30:.1f} GiB"
  yield "kernel", f"{platform.system()} {platform.release()}"
  yield "file system", _file_system(scratch)
  yield "load", load()
  yield "Python", platform.python_version()
  yield "packages", ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)


def _processor() -> str:
  text = Path("/proc/cpuinfo").read_text()
  found = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
  name = found[1] if found else platform.machine()
  return f"{name}, {len(os.sched_getaffinity(0))} cores"


def _num_memory_bytes() -> int:
  return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _file_system(path: Path) -> str:
  """Returns the type of the file system that `path` is on."""
  best, kind = "", "unknown"
  for line in Path("/proc/mounts").read_text().splitlines():
    _, mount, this, *_ = line.split()
    if path.resolve().is_relative_to(mount) and len(mount) >= len(best):
      best, kind = mount, this
  return kind


def _version(package: str) -> str:
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return "unknown"
