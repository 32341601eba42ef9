"""The parameter trees of MaxText's models in both scan modes.

Models are abstract: no array of them exists. They have their real widths and
the least number of layers that shows all of their family's pattern.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, get_args
from unittest import mock

from harness import maxtext_run
from harness.cases import Case

# Two blocks and, where there may be one, a remainder; other blocks have all
# layers alike and get the default.
_NUM_LAYERS = {
  "deepseek": 6,
  "deepseek4": 7,
  "envy": 4,
  "gemma3": 14,
  "gemma4": 14,
  "gpt_oss": 4,
  "llama4": 8,
  "olmo3": 8,
  "qwen3_5": 8,
  "qwen3_next": 10,
}
_DEFAULT_NUM_LAYERS = 3
# Layers of these share keys and values by their distance from the last one.
_REAL_DEPTH = {"gemma4_small"}

type Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Leaf:
  """A variable of a model.

  Attributes:
    variable: Name of its type.
    is_param: Whether that is an `nnx.Param`.
    shape: Of a typed key, without the words of the key.
    dtype: Name of the data type.
  """

  variable: str
  is_param: bool
  shape: tuple[int, ...]
  dtype: str

  @property
  def is_rng(self) -> bool:
    """Whether it is state of a random number stream."""
    return self.variable in ("RngKey", "RngCount")


type Tree = dict[Path, Leaf]


@dataclasses.dataclass(frozen=True)
class Trees:
  """A model in both scan modes.

  Attributes:
    unscanned: Its leaves, or what MaxText says against it.
    scanned: Likewise.
    num_layers: How many it has.
  """

  unscanned: Tree | str
  scanned: Tree | str
  num_layers: int


@dataclasses.dataclass(frozen=True)
class Variant:
  """A model, with flags that change its tree.

  Attributes:
    model: MaxText model name.
    flags: More MaxText flags.
    scan_axis: MaxText's `param_scan_axis`.
  """

  model: str
  flags: tuple[str, ...] = ()
  scan_axis: int = 1

  def __str__(self) -> str:
    axis = f"param_scan_axis={self.scan_axis}" if self.scan_axis != 1 else ""
    return " ".join(filter(None, (self.model, *self.flags, axis)))


@dataclasses.dataclass(frozen=True)
class ModelTrees(Case):
  """The trees of some models of one decoder block."""

  variants: tuple[Variant, ...] = ()

  def run(self, directory: pathlib.Path) -> dict[Variant, Trees]:
    return {variant: _trees(variant, directory) for variant in self.variants}


def accepted_models() -> set[str]:
  """Returns the names that MaxText takes for `model_name`."""
  from maxtext.configs import types

  return set(get_args(types.ModelName))


def _trees(variant: Variant, scratch: pathlib.Path) -> Trees:
  config = maxtext_run.model_config(variant.model)
  block = config["decoder_block"]
  num_layers = _NUM_LAYERS.get(block, _DEFAULT_NUM_LAYERS)
  if block in _REAL_DEPTH:
    num_layers = config["base_num_decoder_layers"]
  flags = [
    f"model_name={variant.model}",
    f"base_num_decoder_layers={num_layers}",
    f"param_scan_axis={variant.scan_axis}",
    *variant.flags,
  ]
  with _engram_tokenizer():
    return Trees(*_both_modes(flags, scratch), num_layers)


def _both_modes(
  flags: Sequence[str], scratch: pathlib.Path
) -> tuple[Tree | str, Tree | str]:
  """Returns the unscanned and the scanned tree."""
  try:
    config = maxtext_run.configure([*flags, "scan_layers=True"], scratch)
  except ValueError as error:
    scanned: Tree | str = str(error)
  else:
    return _tree(maxtext_run.unscanned(config)), _tree(config)
  try:
    config = maxtext_run.configure([*flags, "scan_layers=False"], scratch)
  except ValueError as error:
    return str(error), scanned
  return _tree(config), scanned


def _tree(config: Any) -> Tree:
  from flax import nnx

  model = maxtext_run.abstract_model(config)
  return {
    tuple(map(str, path)): Leaf(
      variable=variable.type.__name__,
      is_param=issubclass(variable.type, nnx.Param),
      shape=tuple(variable.get_value().shape),
      dtype=str(variable.get_value().dtype),
    )
    for path, variable in nnx.to_flat_state(nnx.state(model))
  }


class _Tokenizer:
  """What a model with Engram layers asks of a tokenizer."""

  pad_token_id = 0

  def __len__(self) -> int:
    return 8

  def batch_decode(self, ids: Sequence[Sequence[int]], **_: object):
    return ["abcdefgh"[token] for (token,) in ids]


@contextlib.contextmanager
def _engram_tokenizer() -> Iterator[None]:
  """Spares such a model its tokenizer from the network."""
  import transformers

  with mock.patch.object(
    transformers.AutoTokenizer,
    "from_pretrained",
    return_value=_Tokenizer(),
  ):
    yield
