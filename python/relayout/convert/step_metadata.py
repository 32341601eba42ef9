"""The custom metadata of a target's step."""

import re
from typing import Any

from relayout.convert import forms
from relayout.convert.aside import Origin
from relayout.convert.form import Form
from relayout.convert.options import Options
from relayout.convert.source import Source
from relayout.layouts import lora
from relayout.metadata.training_config import (
  LAYER_PATTERN,
  LORA,
  SCAN_AXIS,
  form_metadata,
  lora_metadata,
)


def custom(
  source: Source,
  after: Form,
  adapters: lora.Lora | None,
  options: Options,
) -> dict[str, Any]:
  """Returns what the target's step records: the source's and its own form."""
  metadata = dict(source.metadata.custom_metadata if source.metadata else {})
  metadata.pop(SCAN_AXIS, None)
  if after.mode != "unknown":
    metadata |= form_metadata(
      scan_layers=after.mode == "scanned", scan_axis=after.scan_axis
    )
  pattern = forms.declared_pattern(source, options)
  if pattern:
    metadata[LAYER_PATTERN] = pattern.text
  if adapters:
    metadata[LORA] = _lora(adapters, options)
  return metadata


def as_before(origin: Origin) -> dict[str, Any]:
  """Returns what a step recorded before it was converted."""
  return dict(origin.custom_metadata)


def _lora(adapters: lora.Lora, options: Options) -> dict[str, Any]:
  """Names as in MaxText's `lora` configuration; alpha only if it is known."""
  names = (target.replace(".", "/") for target in adapters.targets)
  modules = "|".join(map(re.escape, names))
  return lora_metadata(
    adapters.rank, f"(.*/)?({modules})", alpha=options.lora_alpha
  )
