"""What a caller can ask of a conversion."""

import dataclasses
import math
from typing import Any, Literal

from relayout.errors import OptionError
from relayout.layouts import families

type ScanLayers = Literal["keep", "true", "false"]
type StepNumbering = Literal["maxtext", "keep"]


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
  """Options of a conversion to MaxText's layout.

  Attributes:
    scan_layers: Whether the target's layers are scanned.
    model_name: MaxText model name, which tells how layers are grouped.
    layer_pattern: `flat` when all layers form one stack; "" when not given.
    params_only: Leave out the optimizer, the step and the rng state.
    step: Convert only this step of a run; None for all.
    step_numbering: `maxtext`: N updates become directory N - 1, as MaxText
      numbers them. `keep`: the source's directory number.
    lora_alpha: Alpha of the adapters, which Tunix records nowhere.
    force: Convert although an unfinished gradient accumulation is lost.
  """

  scan_layers: ScanLayers = "keep"
  model_name: str = ""
  layer_pattern: Literal["", "flat"] = ""
  params_only: bool = False
  step: int | None = None
  step_numbering: StepNumbering = "maxtext"
  lora_alpha: float | None = None
  force: bool = False

  def __post_init__(self) -> None:
    if self.lora_alpha is not None and not (
      math.isfinite(self.lora_alpha) and self.lora_alpha > 0
    ):
      raise OptionError(f"--lora_alpha={self.lora_alpha}: must be positive")

  def check(self) -> None:
    """Checks what does not depend on the checkpoint.

    Raises:
      OptionError: If `model_name` is not in the table.
    """
    if self.model_name:
      families.family_of(self.model_name)

  def identity(self) -> dict[str, Any]:
    """Returns the options that decide what one step becomes."""
    options = dataclasses.asdict(self)
    del options["step"], options["force"]
    if self.scan_layers == "keep":
      del options["model_name"], options["layer_pattern"]
    return options
