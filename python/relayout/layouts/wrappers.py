"""Where a Tunix trainer keeps its leaves, by what wraps its optimizer.

The counterpart of `optimizer.unwrap`: that takes wrappers off a stored state,
this says where each leaf stands inside them, and which leaves they add.  Pure
data: no checkpoint is read here.
"""

import dataclasses
import enum
from collections.abc import Iterable, Iterator

from relayout.errors import LayoutError, OptionError
from relayout.layouts.state import OptimizerKind, Role, StateKey
from relayout.tree.key_path import KeyPath, TypedPath

CHAIN = "chain"
MULTI_STEPS = "MultiSteps"
INJECT = "inject_hyperparams"

_NAME_OF_OPTION = {
  "multi_steps": MULTI_STEPS,
  "inject_hyperparams": INJECT,
  "clip": CHAIN,
}
_NO_WRAPPERS = "none"

_ROOT = ("opt_state",)
_INNER = {
  # Member 0 clips and keeps no state, so nothing of it is stored.
  CHAIN: ("1",),
  MULTI_STEPS: ("inner_opt_state",),
  INJECT: ("inner_state",),
}
_SCHEDULE = ("hyperparams_states", "learning_rate", "count")
VARIABLE_LEVEL = "value"
"""The level of an `nnx.Variable`, below which its array is stored."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wrappers:
  """What a trainer wraps around its optimizer.

  Attributes:
    names: As `optimizer.unwrap` calls them, outermost first.
  """

  names: tuple[str, ...]

  @property
  def needs_learning_rate(self) -> bool:
    """Whether the state has the learning rate in it."""
    return INJECT in self.names

  def __str__(self) -> str:
    """Returns the text that `parse_wrappers` reads."""
    options = {name: option for option, name in _NAME_OF_OPTION.items()}
    return ",".join(options[name] for name in self.names) or _NO_WRAPPERS


NO_WRAPPERS = Wrappers(())


def parse_wrappers(text: str) -> Wrappers:
  """Reads names separated by commas, outermost first, or `none`.

  Raises:
    OptionError: If a name is unknown, or given twice.
  """
  options = [] if text == _NO_WRAPPERS else text.split(",")
  unknown = [option for option in options if option not in _NAME_OF_OPTION]
  if unknown:
    known = ", ".join(sorted(_NAME_OF_OPTION))
    raise OptionError(
      f"optimizer wrappers {text!r}: {unknown[0]!r} is none of {known}. Give "
      f"them separated by commas, outermost first, or {_NO_WRAPPERS}"
    )
  if len(set(options)) < len(options):
    raise OptionError(f"optimizer wrappers {text!r}: one is given twice")
  return Wrappers(tuple(_NAME_OF_OPTION[option] for option in options))


class Value(enum.Enum):
  """What a leaf of a wrapper holds."""

  ZERO = "0"
  UPDATES = "number of updates"
  LEARNING_RATE = "learning rate"
  ZEROS_LIKE = "zeros"


@dataclasses.dataclass(frozen=True, slots=True)
class ExtraLeaf:
  """A leaf that a wrapper adds to a state.

  Attributes:
    path: Where it stands in `optimizer_state`.
    value: What it holds.
    reason: Why, for reports.
    dtype: Of a scalar; "" for an array.
    like: Key of the weight whose shape and type an array has.
  """

  path: TypedPath
  value: Value
  reason: str
  dtype: str = ""
  like: StateKey | None = None


def place_in_model(key: StateKey, adapter: str) -> TypedPath:
  """Returns where `model_params` has a weight, rng or auxiliary leaf.

  Args:
    key: What the leaf is.
    adapter: Level around the model, or "".
  """
  return _variable(_in_adapter(key.path, adapter))


def place_in_optimizer(
  key: StateKey, kind: OptimizerKind | None, wrappers: Wrappers, adapter: str
) -> TypedPath:
  """Returns where `optimizer_state` has a moment or a counter.

  Args:
    key: What the leaf is.
    kind: Which optimizer it is; does not matter for `Role.STEP`.
    wrappers: What is around the optimizer.
    adapter: Level around the weights of each accumulator, or "".

  Raises:
    LayoutError: If a state with this optimizer has no such leaf.
  """
  if key.role is Role.STEP:
    return _variable(("step",))
  inside = (*_ROOT, *_inside(wrappers.names))
  adam = (*inside, "0") if kind == "adamw" else inside
  match key.role:
    case Role.COUNT:
      return _variable((*adam, "count"))
    case Role.MOMENT:
      return _variable((*adam, key.slot, *_in_adapter(key.path, adapter)))
    case Role.SCHEDULE_COUNT if wrappers.needs_learning_rate:
      outer = wrappers.names[: wrappers.names.index(INJECT)]
      return _variable((*_ROOT, *_inside(outer), *_SCHEDULE))
    case Role.SCHEDULE_COUNT if kind == "adamw":
      return _variable((*inside, "2", "count"))
  raise LayoutError(f"{key}: no leaf of Tunix's optimizer state for {kind}")


def extra_leaves(
  kind: OptimizerKind,
  wrappers: Wrappers,
  adapter: str,
  trained: Iterable[KeyPath],
) -> Iterator[ExtraLeaf]:
  """Yields the leaves that wrappers add, whatever the optimizer.

  Args:
    kind: Which optimizer is inside.
    wrappers: What is around it.
    adapter: Level around the weights of each accumulator, or "".
    trained: Paths of the weights that have moments.
  """
  paths = tuple(trained)
  at: KeyPath = _ROOT
  for name in wrappers.names:
    if name == MULTI_STEPS:
      yield from _multi_steps(at, adapter, paths)
    elif name == INJECT:
      yield from _inject(at, kind)
    at = (*at, *_INNER[name])


def _multi_steps(
  at: KeyPath, adapter: str, trained: Iterable[KeyPath]
) -> Iterator[ExtraLeaf]:
  yield _scalar(
    (*at, "mini_step"), Value.ZERO, "no micro-step since the last update"
  )
  yield _scalar(
    (*at, "gradient_step"), Value.UPDATES, "MultiSteps counts updates"
  )
  for path in trained:
    yield ExtraLeaf(
      path=_variable((*at, "acc_grads", *_in_adapter(path, adapter))),
      value=Value.ZEROS_LIKE,
      reason="no gradient accumulated since the last update",
      like=StateKey(Role.WEIGHT, path),
    )


def _inject(at: KeyPath, kind: OptimizerKind) -> Iterator[ExtraLeaf]:
  yield _scalar(
    (*at, "count"), Value.UPDATES, "inject_hyperparams counts updates"
  )
  yield _scalar(
    (*at, "hyperparams", "learning_rate"),
    Value.LEARNING_RATE,
    "a schedule sets it anew before it is used",
    dtype="float32",
  )
  if kind == "adam_pax":
    yield _scalar(
      (*at, *_SCHEDULE), Value.UPDATES, "the optimizer keeps no schedule"
    )


def _scalar(
  path: KeyPath, value: Value, reason: str, *, dtype: str = "int32"
) -> ExtraLeaf:
  return ExtraLeaf(_variable(path), value, reason, dtype)


def _inside(names: Iterable[str]) -> KeyPath:
  """Returns the path from the outermost of `names` to what is in them."""
  return tuple(part for name in names for part in _INNER[name])


def _in_adapter(path: KeyPath, adapter: str) -> KeyPath:
  return (adapter, *path) if adapter else path


def _variable(path: KeyPath) -> TypedPath:
  """Adds the level of an `nnx.Variable`; digits are names of dicts, too."""
  return TypedPath.of_dicts((*path, VARIABLE_LEVEL))
