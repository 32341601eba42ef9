"""Runs the test files named on the command line under pytest, for Bazel."""

import os
import sys

import pytest


class Shard:
  """Keeps every TEST_TOTAL_SHARDS-th test."""

  def __init__(self, index, total):
    self.index, self.total = index, total

  def pytest_collection_modifyitems(self, config, items):
    gone = [x for n, x in enumerate(items) if n % self.total != self.index]
    items[:] = items[self.index :: self.total]
    config.hook.pytest_deselected(items=gone)


def main():
  env = os.environ
  args = [
    "-p",
    "no:cacheprovider",
    "--import-mode=importlib",
    "-ra",
    "--strict-markers",
  ]
  plugins = []
  if "XML_OUTPUT_FILE" in env:
    args.append("--junitxml=" + env["XML_OUTPUT_FILE"])
  if "TEST_TMPDIR" in env:
    directory = env["TEST_TMPDIR"]
    args.append("--basetemp=" + os.path.join(directory, "pytest"))
    env.setdefault(
      "HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(directory, "hypothesis")
    )
  if env.get("TESTBRIDGE_TEST_ONLY"):  # bazel test --test_filter=
    args.append("-k=" + env["TESTBRIDGE_TEST_ONLY"])
  if env.get("TESTBRIDGE_TEST_RUNNER_FAIL_FAST") == "1":
    args.append("-x")
  total = int(env.get("TEST_TOTAL_SHARDS", "1"))
  if total > 1:
    plugins.append(Shard(int(env["TEST_SHARD_INDEX"]), total))
    with open(env["TEST_SHARD_STATUS_FILE"], "w"):
      pass
  code = pytest.main(args + sys.argv[1:], plugins=plugins)
  partial = total > 1 or env.get("TESTBRIDGE_TEST_ONLY")
  if code == pytest.ExitCode.NO_TESTS_COLLECTED and partial:
    code = 0  # None in this shard, or the filter leaves none here.
  sys.stdout.flush()
  sys.exit(int(code))


main()
