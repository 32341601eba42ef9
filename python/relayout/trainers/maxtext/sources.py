"""Paths to load from, of any layout, made into what MaxText itself reads."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import logging

from relayout.convert import forms
from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.convert.source import Source, read_item, read_step
from relayout.errors import LayoutError, NotACheckpointError
from relayout.layouts import families, maxtext
from relayout.metadata.checkpoint import Found, find_checkpoint
from relayout.trainers.maxtext import settings

PARAMETERS = "load_parameters_path"
FULL_STATE = "load_full_state_path"
FOLDER = "relayout_source"
"""Folder of a run in which converted sources are."""

_DIGEST_LENGTH = 12
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+:/")


def make_readable(config: Any, *names: str) -> None:
  """Converts what a configuration loads from, if MaxText can't read it.

  The data stays where it is, as far as it can: a conversion links it.

  Args:
    config: MaxText's configuration; gets the new paths.
    *names: Which of its options; those that are empty are left alone.

  Raises:
    RelayoutError: If a source is unusable, or does not fit the configuration.
  """
  for name in names:
    path = settings.text(config, name)
    if path and not _ADDRESS.match(path):
      settings.put(config, name, _readable(path, name, config))


def _readable(path: str, name: str, config: Any) -> str:
  if settings.text(config, "source_checkpoint_layout") not in ("", "orbax"):
    return path
  params_only = name == PARAMETERS
  try:
    found = find_checkpoint(path)
  except NotACheckpointError as error:
    # Of another kind, such as safetensors: MaxText judges it.
    logging.info("%s=%s is left to MaxText: %s", name, path, error)
    return path
  source = _read(found, params_only=params_only)
  if not params_only and source.state.optimizer is None:
    raise LayoutError(
      f"{name}={path}: holds no optimizer state; MaxText would take a fresh "
      f"one without a word. Give it as {PARAMETERS}"
    )
  if _is_readable(source, config):
    # Post-training wants the item named, pre-training takes either.
    return path if found.item else str(source.path / maxtext.ITEM)
  target = _target(config, name, source)
  _once(lambda: _convert(source, target, config, params_only=params_only))
  [step] = [p for p in target.iterdir() if p.name.isdecimal()]
  converted = str(step / maxtext.ITEM)
  logging.info(
    "%s=%s: not in the layout that MaxText reads here; converted to %s",
    name,
    path,
    converted,
  )
  return converted


def _read(found: Found, *, params_only: bool) -> Source:
  """Reads what a path leads to; of a run, the newest step."""
  step = found.steps[-1] if found.steps else None
  if step is None or (found.item is not None and params_only):
    assert found.item is not None
    return read_item(found.item, step)
  return read_step(step, params_only=params_only)


def _is_readable(source: Source, config: Any) -> bool:
  """Whether MaxText reads a source as it is, with this configuration."""
  if source.layout != "maxtext":
    return False
  mode = forms.mode_of(source)
  if mode == "unknown":
    return True
  if (mode == "scanned") != bool(config.scan_layers):
    return False
  axis = getattr(config, "param_scan_axis", forms.DEFAULT_SCAN_AXIS)
  return mode == "unscanned" or forms.scan_axis(source, None) == axis


def _target(config: Any, name: str, source: Source) -> Path:
  """Returns where a source goes: another place for each, and for each use."""
  run = Path(settings.text(config, "checkpoint_dir")).parent
  kind = name.removeprefix("load_").removesuffix("_path")
  path = str(source.path.resolve())
  digest = hashlib.sha256(path.encode()).hexdigest()[:_DIGEST_LENGTH]
  return run / FOLDER / kind / f"{source.path.name}_of_{digest}"


def _convert(
  source: Source, target: Path, config: Any, *, params_only: bool
) -> None:
  scanned = bool(config.scan_layers)
  options = Options(
    to="maxtext",
    scan_layers="true" if scanned else "false",
    scan_axis=getattr(config, "param_scan_axis", None) if scanned else None,
    layer_pattern=families.pattern_of_config(config),
    params_only=params_only,
    # What is left of an unfinished update is the trainer's own affair.
    force=True,
  )
  convert(source.path, target, options, progress=logging.info)


def _once(work: Callable[[], None]) -> None:
  """Does it in the first process, while the others wait."""
  import jax
  from jax.experimental import multihost_utils

  if jax.process_index() == 0:
    work()
  if jax.process_count() > 1:
    multihost_utils.sync_global_devices("relayout: source converted")
