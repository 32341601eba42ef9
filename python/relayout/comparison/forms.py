"""How layers are stored on both sides, and which layers belong together."""

import dataclasses
from collections.abc import Iterator

from relayout.comparison.side import Side
from relayout.errors import LayoutError, OptionError
from relayout.layouts import groupings, patterns
from relayout.layouts.layers import Grouping
from relayout.layouts.patterns import Pattern
from relayout.layouts.state import Role, ScanMode
from relayout.tree.key_path import KeyPath

DEFAULT_SCAN_AXIS = 1
"""MaxText's default `param_scan_axis`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
  """What the user says of both sides.

  Attributes:
    model_name: MaxText model name, which tells how layers are grouped; or "".
    layer_pattern: The same in a word, such as `flat`; or "".
    a_scan_axis: Where the first side has its layer axis; None: as recorded, or
      MaxText's default.
    b_scan_axis: Where the second side has it.
  """

  model_name: str = ""
  layer_pattern: str = ""
  a_scan_axis: int | None = None
  b_scan_axis: int | None = None

  def __post_init__(self) -> None:
    for axis in (self.a_scan_axis, self.b_scan_axis):
      if axis is not None and not 0 <= axis <= 2:
        raise OptionError(f"scan axis {axis}: must be 0, 1 or 2")


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
  """How the arrays of layers are stored.

  Attributes:
    mode: Whether the layers are scanned.
    scan_axis: Where the layer axis of a scanned model is.
  """

  mode: ScanMode
  scan_axis: int

  def __str__(self) -> str:
    if self.mode != "scanned":
      return self.mode
    return f"scanned along axis {self.scan_axis}"


@dataclasses.dataclass(frozen=True, slots=True)
class Forms:
  """How two sides are stored.

  Attributes:
    a: The first side.
    b: The second side.
    grouping: Which layers form which stack; None where both sides are stored
      alike, or one of them has no layers.
    note: What was taken for granted, for the report; or "".
  """

  a: Form
  b: Form
  grouping: Grouping | None = None
  note: str = ""


def forms_of(
  a: Side,
  b: Side,
  declared: Declared,
  *,
  by_first: bool = False,
  names: tuple[str, str] = ("A", "B"),
) -> Forms:
  """Returns how both sides are stored.

  Args:
    a: The first side.
    b: The second side.
    declared: What the user says.
    by_first: Whether the first side alone tells how many layers there are; else
      the one whose layers have names does.
    names: What messages call the sides.

  Raises:
    LayoutError: If the layers do not fit the pattern.
    OptionError: If the grouping of layers matters and nothing tells it, or two
      declarations contradict each other.
    UnsupportedError: If MaxText never scans such a model.
  """
  first = _form(a, declared.a_scan_axis, b.record.source_scan_axis)
  second = _form(b, declared.b_scan_axis, a.record.source_scan_axis)
  if not _differ(first, second):
    return Forms(first, second)
  where, pattern = _pattern((a, b), names, declared)
  return Forms(
    first,
    second,
    _grouping(pattern, (a, first), *(() if by_first else ((b, second),))),
    f"layers are grouped as {pattern.text}, by {where}",
  )


def _differ(a: Form, b: Form) -> bool:
  if "unknown" in (a.mode, b.mode):
    return False
  is_scanned = a.mode == "scanned"
  return a.mode != b.mode or (is_scanned and a.scan_axis != b.scan_axis)


def _form(side: Side, given: int | None, told: int | None) -> Form:
  """Returns the form of a side.

  Args:
    side: The side.
    given: Axis that the user says.
    told: Axis that the other side says, which was made from this one.
  """
  for axis in (given, side.record.scan_axis, told):
    if axis is not None:
      return Form(side.mode, axis)
  return Form(side.mode, DEFAULT_SCAN_AXIS)


def _pattern(
  sides: tuple[Side, Side], names: tuple[str, str], declared: Declared
) -> tuple[str, Pattern]:
  """Returns the pattern, and where it is from; what is given goes first."""
  given = list(_given(declared))
  found = given or [
    declaration
    for side, name in zip(sides, names, strict=True)
    for declaration in _recorded(side, name)
  ]
  a, b = sides
  if not found:
    raise OptionError(
      f"{a.step.path} is {a.mode} and {b.step.path} {b.mode}, or along other "
      "axes, and neither records how its model groups layers. Name the model "
      "with --model_name (a MaxText model name), or pass --layer_pattern, such "
      "as flat if all layers form one stack"
    )
  (where, pattern), *others = found
  for name, other in others:
    if other.text != pattern.text:
      raise OptionError(
        f"{where} groups layers as {pattern.text}, {name} as {other.text}. Say "
        "which is right with --layer_pattern"
      )
  return where, pattern


def _given(declared: Declared) -> Iterator[tuple[str, Pattern]]:
  if declared.model_name:
    name = declared.model_name
    yield f"--model_name={name}", patterns.pattern_of(name)
  if declared.layer_pattern:
    text = declared.layer_pattern
    yield f"--layer_pattern={text}", patterns.parse_pattern(text)


def _recorded(side: Side, name: str) -> Iterator[tuple[str, Pattern]]:
  for where, text in side.record.patterns.items():
    yield f"the {where} in {name}", patterns.parse_pattern(text)
  model = side.record.model_name
  if model:
    yield f"the model name {model} in {name}", patterns.pattern_of(model)


def _grouping(pattern: Pattern, *sides: tuple[Side, Form]) -> Grouping:
  """Works out the groups: names of single layers tell them best."""
  for side, form in sides:
    if form.mode == "unscanned":
      return groupings.grouping_of_unscanned(pattern, _paths_of_layers(side))
  side, form = sides[0]
  try:
    return groupings.grouping_of_scanned(
      pattern, _shapes(side), scan_axis=form.scan_axis
    )
  except LayoutError as error:
    raise LayoutError(f"{side.step.path}: {error}") from error


def _paths_of_layers(side: Side) -> list[KeyPath]:
  return [
    key.path for key, _ in side.state.with_role(Role.WEIGHT, Role.AUXILIARY)
  ]


def _shapes(side: Side) -> dict[KeyPath, tuple[int, ...]]:
  return {
    key.path: stored.leaf.spec.shape
    for key, stored in side.state.with_role(Role.WEIGHT, Role.AUXILIARY)
    if stored.leaf.spec is not None
  }
