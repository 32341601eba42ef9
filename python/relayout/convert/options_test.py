"""Options that have no meaning, and what tells two conversions apart."""

from pathlib import Path

import pytest

from relayout.convert.options import MIN_MEMORY_LIMIT, Options
from relayout.errors import OptionError


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"to": ""}, "--to: which layout"),
    ({"scan_axis": 3}, "--scan_axis=3"),
    ({"scan_axis": -1}, "--scan_axis=-1"),
    ({"source_scan_axis": 3}, "--source_scan_axis=3"),
    ({"chunk_bytes": 0}, "--chunk_bytes=0"),
    ({"memory_limit": MIN_MEMORY_LIMIT - 1}, "at least 16MiB"),
    ({"lora_alpha": 0.0}, "--lora_alpha=0.0: must be positive"),
    ({"lora_alpha": float("nan")}, "--lora_alpha=nan"),
    ({"lora_alpha": float("inf")}, "--lora_alpha=inf"),
    ({"compression": "lz4"}, "--compression=lz4"),
    ({"keep": ("",)}, "--keep"),
    ({"drop": ("a", "")}, "--drop"),
    ({"model_name": "llama3.1-8"}, "llama3.1-8b"),
    ({"layer_pattern": "flatt"}, "--layer_pattern=flatt"),
    ({"layer_pattern": "cycle"}, "how many layers"),
    ({"adapter": "base"}, "--adapter.*--to=tunix"),
    ({"optimizer_wrappers": "clip"}, "--optimizer_wrappers.*--to=tunix"),
    ({"to": "tunix", "optimizer_wrappers": "clip,clip"}, "given twice"),
    ({"to": "tunix", "optimizer_wrappers": "adam"}, "'adam' is none of"),
  ],
)
def test_what_has_no_meaning_is_refused(options, message):
  with pytest.raises(OptionError, match=message):
    Options(**options).check()


@pytest.mark.parametrize(
  "options",
  [
    {},
    {"scan_axis": 0, "source_scan_axis": 2},
    {"model_name": "GEMMA3-4b", "layer_pattern": "gemma3"},
    {"compression": "zstd:-1", "chunk_bytes": 1},
    {"memory_limit": MIN_MEMORY_LIMIT},
    {"to": "tunix", "adapter": "", "optimizer_wrappers": "none"},
    {"to": "tunix", "optimizer_wrappers": "multi_steps,inject_hyperparams"},
  ],
)
def test_what_has_one_is_taken(options):
  Options(**options).check()


@pytest.mark.parametrize(
  "changes",
  [
    {"step": 3},
    {"force": True},
    {"memory_limit": 1 << 25},
    {"model_name": "llama3.1-8b"},  # decides nothing: layers stay
  ],
)
def test_what_does_not_change_a_step_is_no_part_of_its_identity(changes):
  assert Options(**changes).identity() == Options().identity()


@pytest.mark.parametrize(
  "changes",
  [
    {"to": "tunix"},
    {"scan_layers": "true"},
    {"scan_layers": "true", "model_name": "llama3.1-8b"},
    {"chunk_like": "layer", "layer_pattern": "flat"},
    {"scan_axis": 1},
    {"params_only": True},
    {"keep": ("a",)},
    {"drop": ("a",)},
    {"dtypes": {"weights": "bfloat16"}},
    {"dtypes": {"moments": "bfloat16"}},
    {"to": "tunix", "adapter": ""},
    {"to": "tunix", "rng": "keep"},
    {"like": Path("somewhere")},
    {"compression": "none"},
    {"chunk_bytes": 1},
    {"step_numbering": "keep"},
    {"lora_alpha": 1.0},
  ],
)
def test_what_changes_a_step_is_a_part_of_its_identity(changes):
  base = {"to": "tunix"} if "to" in changes and len(changes) > 1 else {}
  assert Options(**changes).identity() != Options(**base).identity()
