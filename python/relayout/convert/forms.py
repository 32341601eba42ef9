"""Works out in which form a source is, and in which its target shall be.

What decides is declared: by options, by what the source records, or by the
checkpoint that the target shall look like.  Names tell whether layers are
scanned; nothing is read off shapes but their lengths.
"""

from typing import Any

from relayout.convert.form import Form
from relayout.convert.options import Options
from relayout.convert.source import Source
from relayout.errors import LayoutError, OptionError, UnsupportedError
from relayout.layouts import families, groupings, patterns, stacking
from relayout.layouts.layers import Grouping
from relayout.layouts.patterns import Pattern
from relayout.layouts.state import Role, ScanMode, State
from relayout.metadata import training_config
from relayout.metadata.training_config import LAYER_PATTERN, SCAN_AXIS
from relayout.tree.key_path import KeyPath

DEFAULT_SCAN_AXIS: int = training_config.DEFAULTS[SCAN_AXIS]
"""MaxText's default `param_scan_axis`."""


def source_and_target(source: Source, options: Options) -> tuple[Form, Form]:
  """Returns the forms of a source and of what it shall become.

  Raises:
    LayoutError: If the layers do not fit the pattern, or there are none.
    OptionError: If nothing says how layers are grouped, or options contradict
      what is recorded.
    UnsupportedError: If MaxText never scans such a model.
  """
  mode = mode_of(source)
  axis = DEFAULT_SCAN_AXIS
  if mode == "scanned":
    axis = scan_axis(source, options.source_scan_axis)
  before = Form(mode, axis)
  after = Form(_target_mode(mode, options), _target_axis(before, options))
  if options.chunk_like and after.mode != "scanned":
    raise OptionError(
      f"--chunk_like={options.chunk_like}: the target's layers are not scanned"
    )
  if before.is_stored_like(after) and not options.chunk_like:
    stacking.check_unmixed(source.state.leaves)
    return before, after
  pattern = _pattern_to_stack(source, options, after)
  grouping = _grouping(pattern, source.state, before)
  return (
    Form(mode, axis, grouping),
    Form(after.mode, after.scan_axis, grouping),
  )


def mode_of(source: Source) -> ScanMode:
  """Tells from the names of a source's weights whether they are scanned."""
  return stacking.scan_mode(source.state.weight_paths)


def declared_pattern(source: Source, options: Options) -> Pattern | None:
  """Returns the pattern that is given or recorded, or None.

  Raises:
    OptionError: If two declarations contradict each other.
  """
  found: dict[str, Pattern] = {}
  if options.model_name:
    name = f"--model_name={options.model_name}"
    found[name] = patterns.pattern_of(options.model_name)
  if options.layer_pattern:
    name = f"--layer_pattern={options.layer_pattern}"
    found[name] = patterns.parse_pattern(options.layer_pattern)
  text = recorded_pattern(source)
  if text:
    found[f"recorded {LAYER_PATTERN} {text}"] = patterns.parse_pattern(text)
  if not found:
    return None
  (first, pattern), *others = found.items()
  for name, other in others:
    if other.text != pattern.text:
      raise OptionError(
        f"{first} groups layers as {pattern.text}, against {name} "
        f"({other.text})"
      )
  return pattern


def _recorded(source: Source, name: str) -> Any:
  return source.metadata and source.metadata.custom_metadata.get(name)


def recorded_pattern(source: Source) -> str:
  """Returns the pattern that a source records, or ""."""
  text = _recorded(source, LAYER_PATTERN)
  return text if isinstance(text, str) else ""


def scan_axis(source: Source, given: int | None) -> int:
  """Returns where a scanned source has its layer axis.

  Raises:
    OptionError: If what is given contradicts what is recorded.
  """
  recorded = _recorded(source, SCAN_AXIS)
  if not isinstance(recorded, int) or isinstance(recorded, bool):
    return DEFAULT_SCAN_AXIS if given is None else given
  if given not in (None, recorded):
    raise OptionError(
      f"a layer axis of {given} is given, and {source.path} records "
      f"{SCAN_AXIS} {recorded}"
    )
  return recorded


def _target_axis(source: Form, options: Options) -> int:
  if options.scan_axis is not None:
    return options.scan_axis
  return source.scan_axis if source.mode == "scanned" else DEFAULT_SCAN_AXIS


def _target_mode(mode: ScanMode, options: Options) -> ScanMode:
  if options.scan_layers == "keep":
    return mode
  if mode == "unknown":
    raise LayoutError(
      f"--scan_layers={options.scan_layers}: no leaf below `decoder` is called "
      "`layers` or `layers_<i>`, so it can't be told what to stack. Use "
      "--scan_layers=keep"
    )
  return "scanned" if options.scan_layers == "true" else "unscanned"


def _pattern_to_stack(
  source: Source, options: Options, target: Form
) -> Pattern:
  """Returns the pattern by which layers are stacked or unstacked."""
  name = options.model_name and families.model_named(options.model_name)
  if target.mode == "scanned" and name in families.NEVER_SCANNED:
    raise UnsupportedError(
      f"--model_name={options.model_name}: MaxText accepts this model with "
      "scan_layers=False only. Use --scan_layers=keep"
    )
  pattern = declared_pattern(source, options)
  if pattern is None:
    raise OptionError(
      f"{source.path}: nothing in it says how its model groups layers, which "
      "is needed to stack or unstack them. Name the model with --model_name (a "
      "MaxText model name), or pass --layer_pattern, such as flat if all "
      "layers form one stack"
    )
  return pattern


def _grouping(pattern: Pattern, state: State, form: Form) -> Grouping:
  if form.mode != "scanned":
    return groupings.grouping_of_unscanned(pattern, _paths_of_layers(state))
  shapes = {
    key.path: stored.leaf.spec.shape
    for key, stored in state.with_role(Role.WEIGHT, Role.AUXILIARY)
    if stored.leaf.spec is not None
  }
  return groupings.grouping_of_scanned(
    pattern, shapes, scan_axis=form.scan_axis
  )


def _paths_of_layers(state: State) -> list[KeyPath]:
  """Returns the paths of what each layer has for itself.

  Rng state of an unscanned model is stored once, under its first layer.
  """
  return [key.path for key, _ in state.with_role(Role.WEIGHT, Role.AUXILIARY)]
