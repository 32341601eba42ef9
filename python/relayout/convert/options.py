"""What a caller can ask of a conversion."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from relayout.convert.compression import parse_compression
from relayout.convert.selection import check_patterns
from relayout.errors import OptionError
from relayout.layouts import patterns, wrappers

type ScanLayers = Literal["keep", "true", "false"]
type StepNumbering = Literal["target", "keep"]
type TargetLayout = Literal["", "maxtext", "tunix"]
type Kind = Literal["weights", "moments"]

MIN_MEMORY_LIMIT = 16 << 20
"""Least bytes that `memory_limit` may be."""

DEFAULT_MEMORY_LIMIT = 1 << 30


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
  """Options of a conversion.

  Attributes:
    to: The target's layout; "" to take it from `like`.
    scan_layers: Whether the target's layers are scanned.
    model_name: MaxText model name, which tells how layers are grouped.
    layer_pattern: The same in a word, such as `flat`; "" when not given.
    scan_axis: Where a scanned target has its layer axis; None: as the source,
      or at MaxText's default, 1.
    source_scan_axis: Where the source has it; None: as recorded, or 1.
    params_only: Leave out the optimizer, the step and the rng state.
    keep: Patterns of the leaves to convert; empty: all.
    drop: Patterns of the leaves to leave out.
    dtypes: Data type of floating-point weights or moments in the target.
    adapter: Adapter level of a Tunix target; None: as recorded, or none.
    optimizer_wrappers: What a Tunix trainer wraps around its optimizer, such
      as `clip`; None: as recorded, or `clip`.
    rng: `derive`: give a Tunix trainer keys of the kind that it has; `keep`:
      those of MaxText's pre-training.
    like: A checkpoint that the target shall look like.
    compression: `keep`, `zstd:N` or `none`.
    chunk_bytes: Most bytes of values in one chunk; None: as stored.
    chunk_like: `layer`: chunks of a scanned target hold one layer each.
    memory_limit: Most bytes for buffers where data must be rewritten.
    step: Convert only this step of a run; None for all.
    step_numbering: `target`: as the target's trainer numbers its steps.
      `keep`: the source's directory number.
    lora_alpha: Alpha of the adapters, which Tunix records nowhere.
    force: Convert although an unfinished gradient accumulation is lost.
  """

  to: TargetLayout = "maxtext"
  scan_layers: ScanLayers = "keep"
  model_name: str = ""
  layer_pattern: str = ""
  scan_axis: int | None = None
  source_scan_axis: int | None = None
  params_only: bool = False
  keep: tuple[str, ...] = ()
  drop: tuple[str, ...] = ()
  dtypes: Mapping[Kind, str] = dataclasses.field(default_factory=dict)
  adapter: str | None = None
  optimizer_wrappers: str | None = None
  rng: Literal["derive", "keep"] = "derive"
  like: Path | None = None
  compression: str = "keep"
  chunk_bytes: int | None = None
  chunk_like: Literal["", "layer"] = ""
  memory_limit: int = DEFAULT_MEMORY_LIMIT
  step: int | None = None
  step_numbering: StepNumbering = "target"
  lora_alpha: float | None = None
  force: bool = False

  def check(self) -> None:
    """Checks what does not depend on the checkpoint.

    Raises:
      OptionError: If an option has no meaning, or two contradict each other.
    """
    self._check_numbers()
    self._check_target()
    parse_compression(self.compression)
    check_patterns(self.keep, "--keep")
    check_patterns(self.drop, "--drop")
    if self.model_name:
      patterns.pattern_of(self.model_name)
    if self.layer_pattern:
      patterns.parse_pattern(self.layer_pattern)

  def _check_numbers(self) -> None:
    alpha = self.lora_alpha
    if alpha is not None and not (math.isfinite(alpha) and alpha > 0):
      raise OptionError(f"--lora_alpha={alpha}: must be positive")
    for name in ("scan_axis", "source_scan_axis"):
      value = getattr(self, name)
      if value is not None and not 0 <= value <= 2:
        raise OptionError(f"--{name}={value}: must be 0, 1 or 2")
    if self.chunk_bytes is not None and self.chunk_bytes < 1:
      raise OptionError(f"--chunk_bytes={self.chunk_bytes}: must be positive")
    if self.memory_limit < MIN_MEMORY_LIMIT:
      raise OptionError(
        f"--memory_limit={self.memory_limit}: bytes, at least "
        f"{MIN_MEMORY_LIMIT >> 20}MiB"
      )

  def _check_target(self) -> None:
    if not self.to:
      raise OptionError(
        "--to: which layout? maxtext or tunix, or a checkpoint with --like"
      )
    if self.optimizer_wrappers is not None:
      wrappers.parse_wrappers(self.optimizer_wrappers)
    if self.to == "tunix":
      return
    for name in ("adapter", "optimizer_wrappers"):
      if getattr(self, name) is not None:
        raise OptionError(
          f"--{name} says how a Tunix trainer keeps its state: it goes with "
          "--to=tunix"
        )

  def identity(self) -> dict[str, Any]:
    """Returns the options that decide what one step becomes, as JSON values."""
    options = dataclasses.asdict(self)
    for name in ("step", "force", "memory_limit"):
      del options[name]
    options["dtypes"] = dict(self.dtypes)
    options["like"] = None if self.like is None else str(self.like.resolve())
    if self.scan_layers == "keep" and not self.chunk_like:
      del options["model_name"], options["layer_pattern"]
    default = dataclasses.asdict(Options())
    return {
      name: value
      for name, value in options.items()
      if name in _ALWAYS_RECORDED or value != default[name]
    }


_ALWAYS_RECORDED = ("to", "scan_layers")
