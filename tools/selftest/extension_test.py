"""The build makes an extension module that finds zstd and hides it."""

import subprocess
import sys

import zstandard

from tools.selftest import selftest_ext


def test_compresses_with_zstd():
  data = b"relayout" * 1000
  packed = selftest_ext.compress(data)
  assert zstandard.ZstdDecompressor().decompress(packed) == data


def test_brings_its_own_zstd():
  assert selftest_ext.zstd_version() == "1.5.7"


def test_exports_the_init_function_only():
  command = ["nm", "-D", "--defined-only", selftest_ext.__file__]
  lines = subprocess.check_output(command, text=True).splitlines()
  names = [line.split()[-1] for line in lines if line.split()[-2].isupper()]
  assert names == ["PyInit_selftest_ext"]


def test_jax_is_absent():
  assert not any("jaxlib" in path for path in sys.path)
  assert "jax" not in sys.modules
