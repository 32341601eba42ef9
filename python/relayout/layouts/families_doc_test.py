"""`docs/families.md` shows what the tables say."""

import pathlib
from collections.abc import Iterator

import pytest

from relayout.layouts import families, patterns
from relayout.layouts.layers import LayerGroup
from relayout.layouts.patterns import Pattern, Run
from relayout.tree.key_path import dotted

_DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "families.md"
_PROOFS = {
  "unscanned": "test_maxtext_never_scans_these",
  "deepseek_engram": "test_engram_layers_are_in_scanned_models_only",
}
_PROOF = "test_the_groups_cover_every_leaf_once"


def _families() -> Iterator[str]:
  yield "| decoder block | pattern | models | test |"
  yield "|---|---|---|---|"
  for family in families.FAMILIES:
    proof = _PROOFS.get(family.pattern, _PROOF)
    models = ", ".join(family.models)
    yield f"| {family.block} | `{family.pattern}` | {models} | `{proof}` |"


def _patterns() -> Iterator[str]:
  yield "| pattern | scanned name | layers, of two blocks and a rest | axes |"
  yield "|---|---|---|---|"
  texts = dict.fromkeys(family.pattern for family in families.FAMILIES)
  for pattern in map(patterns.parse_pattern, texts):
    if pattern.refusal:
      yield f"| `{pattern.text}` | none: {pattern.refusal} | | |"
    for run in pattern.runs:
      yield from _run(pattern, run)


def _run(pattern: Pattern, run: Run) -> Iterator[str]:
  rest = run.remainder[-1].stop if run.remainder else 0
  for group in run.groups(run.head + 2 * run.block_size + rest):
    numbers = [
      member[1].removeprefix(f"{run.name}_") for member in group.members
    ]
    yield (
      f"| `{pattern.text}` | `{dotted(group.scanned[1:])}` | `{run.name}_` "
      f"{' '.join(numbers)} | {_axes(run, group)} |"
    )


def _axes(run: Run, group: LayerGroup) -> str:
  if not group.lengths:
    return "none"
  if any(group.scanned == slot.path for slot in run.remainder):
    return "rest"
  return ", ".join(["blocks", *map(str, group.lengths[1:])])


@pytest.mark.parametrize(
  "table", [_families, _patterns], ids=["families", "patterns"]
)
def test_the_document_has_the_table(table):
  want = "\n".join(table())
  found = f"\n\n{want}\n\n" in _DOCUMENT.read_text()
  assert found, f"docs/families.md should have\n{want}"
