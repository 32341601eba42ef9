import json

from tools import test_summary

REPORT = """<testsuites><testsuite>
<testcase name="a"/>
<testcase name="b"><skipped/></testcase>
<testcase name="c">{}</testcase>
</testsuite></testsuites>"""


def result(path, status, *, attempt=1, label="//a:b"):
  ident = {"label": label, "run": 1, "shard": 1, "attempt": attempt}
  output = {"name": "test.xml", "uri": f"file://{path}"}
  return json.dumps(
    {
      "id": {"testResult": ident},
      "testResult": {"status": status, "testActionOutput": [output]},
    }
  )


def count(*lines):
  total = test_summary.count_events(lines)
  return total["passed"], total["failed"], total["skipped"]


def test_counts_cases(tmp_path):
  path = tmp_path / "test.xml"
  path.write_text(REPORT.format(""))
  assert count(result(path, "PASSED")) == (2, 0, 1)
  path.write_text(REPORT.format("<failure/>"))
  assert count(result(path, "FAILED")) == (1, 1, 1)


def test_last_attempt_stands(tmp_path):
  bad, good = tmp_path / "bad.xml", tmp_path / "good.xml"
  bad.write_text(REPORT.format("<failure/>"))
  good.write_text(REPORT.format(""))
  lines = result(bad, "FAILED"), result(good, "FLAKY", attempt=2)
  assert count(*lines) == (2, 0, 1)


def test_timeout_without_report_is_a_failure(tmp_path):
  assert count(result(tmp_path / "none.xml", "TIMEOUT")) == (0, 1, 0)


def test_targets_that_did_not_run():
  ident = {"targetCompleted": {"label": "//a:b"}}
  skipped = {"id": ident, "aborted": {"reason": "SKIPPED"}}
  broken = {"id": ident, "completed": {}}
  built = {"id": ident, "completed": {"success": True}}
  lines = [json.dumps(event) for event in (skipped, broken, built)]
  assert count(*lines) == (0, 1, 1)
