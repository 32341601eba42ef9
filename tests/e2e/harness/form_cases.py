"""Cases whose layers become stacks, or stacks layers, for MaxText itself.

What the target should hold is worked out here with NumPy, by rules of its own.
"""

import dataclasses
import pathlib
import re
from collections.abc import Callable

import numpy as np

from harness import converter, maxtext_source, tunix_source
from harness.cases import Resume
from harness.tunix_source import Arrays, TrainState

_BLOCK = 6
_LAYER = re.compile(r"(^|\.)layers_(\d+)\.")
_BLOCK_LAYER = re.compile(r"(^|\.)layers\.layers_(\d+)\.")


@dataclasses.dataclass(frozen=True)
class Form(Resume):
  """Pre-training resumes from a target in another form.

  Attributes:
    of_maxtext: Whether the source is a checkpoint of MaxText.
    block: Layers of a block of a pattern model; 0 for a flat one.
    unstack: Whether the converter has to unstack layers.
    scan_axis: Layer axis of the target.
  """

  of_maxtext: bool = True
  block: int = 0
  unstack: bool = False
  scan_axis: int = 1

  @property
  def flags(self) -> list[str]:
    return [*super().flags, f"param_scan_axis={self.scan_axis}"]

  def read(self, source: pathlib.Path) -> TrainState:
    step = source / self.step
    reader = maxtext_source if self.of_maxtext else tunix_source
    state = reader.read(step)
    if self.unstack:
      return _changed(state, lambda arrays: _unstacked(arrays, self.block))
    if self.stack:
      return _changed(state, lambda arrays: _stacked(arrays, self.block))
    if self.scan_axis != 1:
      return _changed(state, lambda arrays: _moved(arrays, self.scan_axis))
    return state


@dataclasses.dataclass(frozen=True)
class ThereAndBack(Form):
  """As `Form`, of a target that was scanned in between."""

  there: tuple[str, ...] = ()
  first_step: str = "4"

  def prepare(self, source: pathlib.Path) -> None:
    middle = source.parent / "middle"
    converter.convert(source, middle, *self.there)
    source.rename(source.parent / "first")
    middle.rename(source)

  def read(self, source: pathlib.Path) -> TrainState:
    """The state of the first checkpoint, of which nothing may be lost."""
    return tunix_source.read(source.parent / "first" / self.first_step)


def _changed(
  state: TrainState, change: Callable[[Arrays], Arrays]
) -> TrainState:
  return dataclasses.replace(
    state,
    weights=change(state.weights),
    mu=change(state.mu),
    nu=change(state.nu),
    aux={},
  )


def _stacked(arrays: Arrays, block: int) -> Arrays:
  """Stacks `layers_<i>`; in blocks, and the rest apart, if `block` is given."""
  layers: dict[tuple[str, ...], dict[int, np.ndarray]] = {}
  result = {}
  numbers = [int(m.group(2)) for m in map(_LAYER.search, arrays) if m]
  whole = (max(numbers) + 1) // block * block if block else 0
  for path, array in arrays.items():
    match = _LAYER.search(path)
    if not match:
      result[path] = array
      continue
    number = int(match.group(2))
    if block and number >= whole:
      name = f"layers_remainder.layers_{number - whole}."
      result[_LAYER.sub(rf"\1{name}", path)] = array
      continue
    name = f"layers.layers_{number % block}." if block else "layers."
    stack = _LAYER.sub(rf"\1{name}", path)
    layers.setdefault(stack, {})[number] = array
  for path, by_number in layers.items():
    ordered = [by_number[number] for number in sorted(by_number)]
    result[path] = np.stack(ordered, axis=1)
  return result


def _unstacked(arrays: Arrays, block: int) -> Arrays:
  """The inverse of `_stacked`."""
  result = {}
  num_blocks = max(
    (a.shape[1] for p, a in arrays.items() if ".layers." in p), default=0
  )
  for path, array in arrays.items():
    remainder = re.search(r"\.layers_remainder\.layers_(\d+)\.", path)
    inside = _BLOCK_LAYER.search(path)
    if remainder:
      number = num_blocks * block + int(remainder.group(1))
      start, end = remainder.span()
      result[f"{path[:start]}.layers_{number}.{path[end:]}"] = array
    elif inside and block:
      for i in range(array.shape[1]):
        number = i * block + int(inside.group(2))
        name = _BLOCK_LAYER.sub(rf"\1layers_{number}.", path)
        result[name] = np.ascontiguousarray(array[:, i])
    elif ".layers." in path:
      for i in range(array.shape[1]):
        name = path.replace(".layers.", f".layers_{i}.")
        result[name] = np.ascontiguousarray(array[:, i])
    else:
      result[path] = array
  return result


def _moved(arrays: Arrays, axis: int) -> Arrays:
  return {
    path: np.ascontiguousarray(np.moveaxis(array, 1, axis))
    if ".layers." in path
    else array
    for path, array in arrays.items()
  }


_QWEN3 = "--model_name=qwen3-0.6b"
_GEMMA3 = "--model_name=gemma3-4b"
_MOE = "--model_name=qwen3-30b-a3b"
_SCAN = "--scan_layers=true"
_UNSCAN = "--scan_layers=false"

FORMS = [
  Form(
    "pretrain_unscan_to_scanned",
    "pretrain_unscan",
    convert=(_SCAN, _QWEN3),
    stack=True,
  ),
  Form(
    "pretrain_scan_to_unscanned",
    "pretrain_scan",
    convert=(_UNSCAN, _QWEN3),
    scanned=False,
    unstack=True,
  ),
  Form(
    "sft_scan_to_unscanned",
    "sft_scan",
    convert=(_UNSCAN, _QWEN3),
    scanned=False,
    unstack=True,
    of_maxtext=False,
  ),
  Form(
    "pretrain_scan_to_axis_0",
    "pretrain_scan",
    convert=("--scan_axis=0", _QWEN3),
    scan_axis=0,
  ),
  Form(
    "pretrain_unscan_blocks_to_scanned",
    "pretrain_unscan_gemma3",
    convert=(_SCAN, _GEMMA3),
    stack=True,
    block=_BLOCK,
    model="gemma3",
  ),
  Form(
    "pretrain_scan_blocks_to_unscanned",
    "pretrain_scan_gemma3",
    convert=(_UNSCAN, _GEMMA3),
    scanned=False,
    unstack=True,
    block=_BLOCK,
    model="gemma3",
  ),
  Form(
    "sft_unscan_blocks_to_scanned",
    "sft_unscan_gemma3",
    convert=(_SCAN, _GEMMA3),
    stack=True,
    block=_BLOCK,
    of_maxtext=False,
    model="gemma3",
  ),
  ThereAndBack(
    "sft_unscan_experts_there_and_back",
    "sft_unscan_qwen3moe",
    step="3",
    there=("--to=maxtext", _SCAN, _MOE),
    convert=(_UNSCAN, _MOE),
    scanned=False,
    model="qwen3moe",
  ),
]
