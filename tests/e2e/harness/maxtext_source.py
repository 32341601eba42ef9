"""What a MaxText checkpoint says, read with TensorStore alone."""

import pathlib

from harness import tunix_source
from harness.tunix_source import Arrays, TrainState


def read(step: pathlib.Path) -> TrainState:
  """Reads a step directory that MaxText's pre-training wrote with AdamW."""
  arrays = tunix_source.read_item(step / "items")
  return TrainState(
    weights=_below(arrays, "params.params."),
    mu=_below(arrays, "opt_state.0.mu.params."),
    nu=_below(arrays, "opt_state.0.nu.params."),
    count=int(arrays["opt_state.0.count"]),
    schedule_count=int(arrays["opt_state.2.count"]),
    step=int(arrays["step"]),
    aux=_below(arrays, "nnx_aux.model."),
  )


def _below(arrays: Arrays, prefix: str) -> Arrays:
  return {
    name.removeprefix(prefix): array
    for name, array in arrays.items()
    if name.startswith(prefix)
  }
