"""Prints 'N passed, N failed, N skipped' for runs of `bazel test`.

  test_summary.py EVENTS...     files of bazel test --build_event_json_file=

Counts test cases (from each test.xml of those runs, cached or not), not
targets. A target that failed without a failing case (a time-out, a crash, a
build failure) counts as one failure, and an incompatible target as one skip.
"""

import collections
import contextlib
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ET


def count_cases(uri):
  count = collections.Counter()
  path = urllib.parse.unquote(urllib.parse.urlparse(uri).path)
  for case in ET.parse(path).getroot().iter("testcase"):
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
      count["failed"] += 1
    elif "skipped" in tags or case.get("status") == "notrun":
      count["skipped"] += 1
    else:
      count["passed"] += 1
  return count


def count_attempt(result):
  """Counts the cases of a testResult event: one shard, one attempt."""
  count = collections.Counter()
  for output in result.get("testActionOutput", []):
    if output["name"] == "test.xml":
      # A crash may leave half a report; the status still tells.
      with contextlib.suppress(OSError, ET.ParseError):
        count += count_cases(output["uri"])
  if result["status"] in {"PASSED", "FLAKY"}:
    count["failed"] = 0
    if not count.total():
      count["passed"] = 1
  else:
    count["failed"] = count["failed"] or 1
  return count


def count_events(lines):
  attempts = {}
  total = collections.Counter()
  for line in lines:
    event = json.loads(line)
    ident = event["id"]
    if "testResult" in event:
      key = ident["testResult"]
      # Of several attempts at a shard, the last one stands.
      slot = (key["label"], key.get("run"), key.get("shard"))
      attempts[slot] = count_attempt(event["testResult"])
    elif "targetCompleted" in ident and "aborted" in event:
      skipped = event["aborted"].get("reason") == "SKIPPED"
      total["skipped" if skipped else "failed"] += 1
    elif "targetCompleted" in ident and not event["completed"].get("success"):
      total["failed"] += 1  # It did not build.
  return sum(attempts.values(), total)


def main():
  total = collections.Counter()
  for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
      total += count_events(file)
  print(
    f"{total['passed']} passed, {total['failed']} failed,"
    f" {total['skipped']} skipped"
  )


if __name__ == "__main__":
  main()
