"""The patterns in which MaxText groups layers, as data.

Facts: `layers/nnx_decoders.py` and `models/*.py` of the released MaxText
0.2.5; the end-to-end tests compare the patterns with its models.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

from relayout.errors import OptionError
from relayout.layouts import families
from relayout.layouts.layers import LayerGroup
from relayout.tree.key_path import KeyPath

ROOT = "decoder"
"""The module that has the layers; all names of a pattern are below it."""

_REMAINDER = "layers_remainder"
_BLOCKS = "scanned_blocks"
_TEXT = re.compile(r"(?P<kind>[a-z][a-z0-9_]*)(:(?P<number>[0-9]{1,2}))?")


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
  """Layers of a block that have one name in the scanned model.

  Attributes:
    name: Names below `decoder`, such as `("layers", "layers_0")`.
    start: Position in the block of the first layer.
    stop: Position after the last one.
    nested: Whether the block scans these layers by themselves, so that their
      arrays have one more layer axis.
  """

  name: KeyPath
  start: int
  stop: int
  nested: bool = False

  @property
  def path(self) -> KeyPath:
    """Path of the layer in the scanned model."""
    return (ROOT, *self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
  """Layers that an unscanned model numbers together.

  The first `head` of them are the same in a scanned model. The others form
  blocks, which one scan stacks; layers that do not fill a block follow.

  Attributes:
    name: What the unscanned model calls them: `<name>_0`, `<name>_1` ...
    block: The slots of a block, in order of their positions.
    remainder: The slots of an unfilled block; empty where MaxText calls for
      full blocks.
    head: Number of layers that are never stacked.
  """

  name: str
  block: tuple[Slot, ...]
  remainder: tuple[Slot, ...] = ()
  head: int = 0

  @property
  def block_size(self) -> int:
    """Number of layers in a block."""
    return self.block[-1].stop

  def layer(self, number: int) -> KeyPath:
    """Returns the path of a layer in the unscanned model."""
    return (ROOT, f"{self.name}_{number}")

  def groups(self, num_layers: int) -> Iterator[LayerGroup]:
    """Yields the groups of a model with `num_layers` of these layers.

    Args:
      num_layers: `head` plus a number that fits; see `fits`.
    """
    for i in range(self.head):
      yield LayerGroup(self.layer(i), (self.layer(i),), ())
    num_blocks, rest = divmod(num_layers - self.head, self.block_size)
    if num_blocks:
      yield from (self._in_blocks(slot, num_blocks) for slot in self.block)
    first = num_layers - rest
    for slot in self.remainder:
      count = min(slot.stop, rest) - slot.start
      if count > 0:
        start = first + slot.start
        yield LayerGroup(
          slot.path,
          tuple(map(self.layer, range(start, start + count))),
          (count,) if slot.nested else (),
        )

  def _in_blocks(self, slot: Slot, num_blocks: int) -> LayerGroup:
    inner = range(slot.start, slot.stop)
    return LayerGroup(
      slot.path,
      tuple(
        self.layer(self.head + block * self.block_size + i)
        for block in range(num_blocks)
        for i in inner
      ),
      (num_blocks, len(inner)) if slot.nested else (num_blocks,),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
  """How a family of models groups its layers.

  Attributes:
    text: Its canonical spelling; `parse_pattern` reads it.
    runs: The runs of layers; no two share a name.
    refusal: Why layers of such a model cannot be stacked or unstacked; empty
      if they can.
  """

  text: str
  runs: tuple[Run, ...] = ()
  refusal: str = ""


def parse_pattern(text: str) -> Pattern:
  """Returns the pattern that `--layer_pattern` names.

  Args:
    text: `flat`, `cycle:4` or another kind of the table, with a number where
      the kind has one; or a decoder block of MaxText, such as `gpt_oss`.

  Raises:
    OptionError: If there is no such pattern.
  """
  match = _TEXT.fullmatch(text)
  kind = match and _KINDS.get(match["kind"])
  if match and kind:
    return _pattern(kind, match["kind"], match["number"], text)
  for family in families.FAMILIES:
    if text == family.block:
      return parse_pattern(family.pattern)
  blocks = sorted({family.block for family in families.FAMILIES})
  raise OptionError(
    f"--layer_pattern={text}: not a pattern. There are "
    f"{', '.join(kind.spelling(name) for name, kind in _KINDS.items())}; and "
    f"the decoder blocks of MaxText: {', '.join(blocks)}"
  )


def pattern_of(model_name: str) -> Pattern:
  """Returns the pattern of a MaxText model name.

  Raises:
    OptionError: If the name is not in the table; lists the nearest ones.
  """
  return parse_pattern(families.family_of(model_name).pattern)


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
  """Makes the patterns of one kind.

  Attributes:
    runs: Takes the number in the text.
    default: The number where the text has none; 0 if it must have one, None
      if the kind has none.
    minimum: Of the number.
    refusal: As of the patterns.
  """

  runs: Callable[[int], tuple[Run, ...]]
  default: int | None = None
  minimum: int = 1
  refusal: str = ""

  def spelling(self, name: str) -> str:
    """Returns how a pattern of the kind is written."""
    return name if self.default is None else f"{name}:N"


def _one_stack(name: str) -> Run:
  return Run(name, (Slot((name,), 0, 1),))


def _each(name: str, layer: str, count: int) -> tuple[Slot, ...]:
  return tuple(Slot((name, f"{layer}_{i}"), i, i + 1) for i in range(count))


def _local_and_global(name: str, size: int) -> tuple[Slot, ...]:
  return (
    Slot((name, "local_layers"), 0, size - 1, nested=True),
    Slot((name, "global_layer"), size - 1, size),
  )


def _unfilled(block: tuple[Slot, ...]) -> tuple[Slot, ...]:
  """Returns the slots of a remainder: those of a block without its last."""
  return tuple(
    dataclasses.replace(slot, name=(_REMAINDER, *slot.name[1:]))
    for slot in block[:-1]
  )


def _with_remainder(block: tuple[Slot, ...]) -> tuple[Run, ...]:
  return (Run("layers", block, remainder=_unfilled(block)),)


_KINDS: Mapping[str, _Kind] = {
  "flat": _Kind(lambda _: (_one_stack("layers"),)),
  "cycle": _Kind(
    lambda n: (Run("layers", _each("layers", "layers", n)),), default=0
  ),
  "deepseek": _Kind(
    lambda _: (_one_stack("dense_layers"), _one_stack("moe_layers"))
  ),
  "deepseek4": _Kind(
    lambda n: (Run("layers", _each("scanned_blocks", "layers", 2), head=n),),
    default=3,
    minimum=0,
  ),
  "gemma3": _Kind(lambda _: _with_remainder(_each("layers", "layers", 6))),
  "gemma4": _Kind(lambda _: _with_remainder(_local_and_global(_BLOCKS, 6))),
  "qwen3_5": _Kind(
    lambda n: (Run("layers", _each("layers", "layer", n)),), default=4
  ),
  "qwen3_next": _Kind(
    lambda n: _with_remainder(_local_and_global("layers", n)),
    default=4,
    minimum=2,
  ),
  "deepseek_engram": _Kind(
    lambda _: (),
    refusal="MaxText's unscanned model lacks the Engram layers that its "
    "scanned model has",
  ),
  "unscanned": _Kind(
    lambda _: (),
    refusal="MaxText accepts such a model with scan_layers=False only",
  ),
}
"""Adding a family whose layers form other groups is an entry here."""


def _pattern(kind: _Kind, name: str, number: str | None, text: str) -> Pattern:
  if kind.default is None:
    if number is not None:
      raise OptionError(f"--layer_pattern={text}: {name} has no number")
    return Pattern(name, kind.runs(0), kind.refusal)
  if number is None and not kind.default:
    raise OptionError(
      f"--layer_pattern={text}: say how many layers: {kind.spelling(name)}"
    )
  value = kind.default if number is None else int(number)
  if value < kind.minimum:
    raise OptionError(
      f"--layer_pattern={text}: {value}, where {name} takes {kind.minimum} or "
      "more"
    )
  return Pattern(f"{name}:{value}", kind.runs(value), kind.refusal)
