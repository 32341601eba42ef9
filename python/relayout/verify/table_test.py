"""The report as text and as JSON."""

import json

from relayout.verify.account import (
  Derived,
  Difference,
  Dropped,
  Held,
  Kind,
  Way,
)
from relayout.verify.report import StepReport, VerifyReport
from relayout.verify.table import render_table

_ACCOUNTS = (
  Held(Way.MOVED, ("model_params/a.value",), "items/params.params.a", 2000),
  Held(Way.STACKED, ("model_params/l_0", "model_params/l_1"), "items/l", 48),
  Held(
    Way.UNSTACKED,
    ("model_params/l",),
    "items/l_0",
    12,
    "float32 -> bfloat16",
  ),
  Held(Way.SET_ASIDE, ("model_params/k",), "relayout/model_params.k", 8),
  Derived(
    ("optimizer_state/step.value",), "items/step", "the trainer's step", 4, 4
  ),
  *(Dropped(f"model_params/rngs.{i}", "threefry", 8) for i in range(5)),
)


def _report(*differences):
  step = StepReport(
    "run/4",
    "out/3/items",
    4,
    (*_ACCOUNTS, *differences),
    2048,
    0.25,
    ("a note",),
  )
  return VerifyReport("run", "out", (step,), (), 0.5)


def test_a_good_report():
  assert render_table(_report()).split("\n") == [
    "run/4 -> out/3/items",
    "  updates   4",
    "  leaves    1 moved, 1 stacked, 1 set aside, 1 cast, 1 derived, 5 dropped",
    "  compared  2,048 bytes",
    "  cast      1 leaf, float32 -> bfloat16, as asked for: each value rounded",
    "  derived   items/step, 4 -> 4: the trainer's step",
    "  dropped   model_params/rngs.0, model_params/rngs.1, model_params/rngs.2 "
    "and 2 more: threefry",
    "  note: a note",
    "",
    "verified: every leaf is accounted for, 1 step in 0.500 s",
  ]


def test_differences_are_shown_in_full_up_to_a_number():
  found = [Difference(Kind.VALUE, f"items/{i}", "differs") for i in range(27)]
  report = _report(*found)
  lines = render_table(report).split("\n")
  assert not report.is_ok
  assert "  DIFFERENCE (value) items/0: differs" in lines
  assert sum("DIFFERENCE" in line for line in lines) == 20
  assert "  and 7 more" in lines
  assert lines[-1] == "NOT verified: 27 differences, 1 step in 0.500 s"


def test_unpaired_steps():
  unpaired = (Difference(Kind.STEP, "run/2", "no step of the target"),)
  report = VerifyReport("run", "out", (), unpaired, 0.5)
  assert not report.is_ok
  assert "DIFFERENCE (step) run/2: no step of the target" in render_table(
    report
  )
  assert "NOT verified: no step" in render_table(report)


def test_nothing_verified_is_not_ok():
  assert not VerifyReport("run", "out", (), (), 0.0).is_ok


def test_json_holds_every_account():
  difference = Difference(Kind.EXTRA, "items/x", "the source has none")
  value = json.loads(json.dumps(_report(difference).to_json()))
  assert value["is_ok"] is False
  assert value["totals"] == {
    "moved": 1,
    "stacked": 1,
    "unstacked": 0,
    "restacked": 0,
    "set_aside": 1,
    "restored": 0,
    "cast": 1,
    "derived": 1,
    "dropped": 5,
    "differences": 1,
  }
  [step] = value["steps"]
  assert step["differences"] == [
    {"kind": "extra", "leaf": "items/x", "detail": "the source has none"}
  ]
  assert step["derived"][0]["source_value"] == 4
  assert step["cast"][0]["way"] == "unstacked"
  assert step["stacked"][0]["sources"] == [
    "model_params/l_0",
    "model_params/l_1",
  ]
