"""Decides which source leaves form each target leaf."""

from collections.abc import Mapping

from relayout.convert.options import Options
from relayout.errors import LayoutError, OptionError, UnsupportedError
from relayout.layouts import families, stacking
from relayout.layouts.state import ScanMode, StateKey

type Groups = Mapping[StateKey, tuple[StateKey, ...]]


def target_mode(source: ScanMode, options: Options) -> ScanMode:
  """Returns whether the target's layers are scanned.

  Raises:
    UnsupportedError: If that would mean to unstack.
    LayoutError: If the source has no layers to stack.
  """
  if options.scan_layers == "keep":
    return source
  wanted: ScanMode = "scanned" if options.scan_layers == "true" else "unscanned"
  if wanted == source:
    return source
  if source == "unknown":
    raise LayoutError(
      f"--scan_layers={options.scan_layers}: no leaf below `decoder` is called "
      "`layers` or `layers_<i>`, so it can't be told what to stack. Use "
      "--scan_layers=keep"
    )
  if wanted == "unscanned":
    raise UnsupportedError(
      "--scan_layers=false: the checkpoint is scanned, and unstacking is not "
      "supported yet. Use --scan_layers=keep and MaxText's scan_layers=True"
    )
  return wanted


def group(keys: list[StateKey], *, stack: bool, options: Options) -> Groups:
  """Returns the source leaves of each target leaf.

  Args:
    keys: Leaves that go into the target.
    stack: Whether layers become stacks.
    options: Tell how the model groups its layers.

  Raises:
    OptionError: If stacking is asked for and nothing says how.
    UnsupportedError: If the model's layers come in patterns.
  """
  if not stack:
    return {key: (key,) for key in keys}
  _check_flat(options)
  return stacking.stack_flat(keys)


def _check_flat(options: Options) -> None:
  family = options.model_name and families.family_of(options.model_name)
  if options.model_name in families.NEVER_SCANNED:
    raise UnsupportedError(
      f"--model_name={options.model_name}: MaxText accepts this model with "
      "scan_layers=False only. Use --scan_layers=keep"
    )
  if family and not family.is_flat:
    clash = " against --layer_pattern=flat" if options.layer_pattern else ""
    raise UnsupportedError(
      f"--model_name={options.model_name}{clash}: {family.block} groups its "
      f"layers as {family.pattern}, which is not supported yet. Use "
      "--scan_layers=keep and MaxText's scan_layers=False"
    )
  if not family and not options.layer_pattern:
    raise OptionError(
      "--scan_layers=true: no unscanned checkpoint records how its model "
      "groups layers. Name the model with --model_name (a MaxText model name), "
      "or pass --layer_pattern=flat if all layers form one stack"
    )
