"""The custom metadata of a target's step."""

import re
from typing import Any

from relayout.convert import forms
from relayout.convert.aside import Origin
from relayout.convert.form import Form
from relayout.convert.options import Options
from relayout.convert.source import Source
from relayout.layouts import lora


def custom(
  source: Source,
  after: Form,
  adapters: lora.Lora | None,
  options: Options,
) -> dict[str, Any]:
  """Returns what the target's step records: the source's and its own form."""
  metadata = dict(source.metadata.custom_metadata if source.metadata else {})
  if after.mode != "unknown":
    metadata["scan_layers"] = after.mode == "scanned"
  metadata.pop(forms.SCAN_AXIS, None)
  if after.mode == "scanned":
    metadata[forms.SCAN_AXIS] = after.scan_axis
  pattern = forms.declared_pattern(source, options)
  if pattern:
    metadata[forms.LAYER_PATTERN] = pattern.text
  if adapters:
    metadata["lora"] = _lora(adapters, options)
  return metadata


def as_before(origin: Origin) -> dict[str, Any]:
  """Returns what a step recorded before it was converted."""
  return dict(origin.custom_metadata)


def _lora(adapters: lora.Lora, options: Options) -> dict[str, Any]:
  """Names as in MaxText's `lora` configuration; alpha only if it is known."""
  names = (target.replace(".", "/") for target in adapters.targets)
  modules = "|".join(map(re.escape, names))
  known: dict[str, Any] = {
    "enable_lora": True,
    "lora_rank": adapters.rank,
    "lora_module_path": f"(.*/)?({modules})",
  }
  if options.lora_alpha is not None:
    known["lora_alpha"] = options.lora_alpha
  return known
