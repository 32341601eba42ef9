"""What a plan recognised, and what the user should know of it."""

from collections.abc import Iterator

from relayout.convert.options import Options
from relayout.layouts import lora
from relayout.layouts.state import Role, ScanMode, State, StateKey
from relayout.tree.key_path import dotted


def facts(
  state: State,
  source_mode: ScanMode,
  mode: ScanMode,
  adapters: lora.Lora | None,
) -> tuple[tuple[str, str], ...]:
  """Returns what was recognised, as (name, value)."""
  layers = source_mode if mode == source_mode else f"{source_mode} -> {mode}"
  found = [("layers", layers), ("adapter level", state.adapter or "none")]
  if state.optimizer:
    wrappers = " in ".join((state.optimizer, *reversed(state.wrappers)))
    found.append(("optimizer", wrappers))
  if state.step:
    found.append(("updates", f"{state.step.value} ({state.step.rule})"))
  quantized = sum(map(lora.is_quantized, state.weight_paths))
  if quantized:
    found.append(("quantized leaves", str(quantized)))
  if adapters:
    targets = ", ".join(adapters.targets)
    found.append(("LoRA", f"rank {adapters.rank} on {targets}"))
  return tuple(found)


def notes(
  state: State,
  adapters: lora.Lora | None,
  mode: ScanMode,
  options: Options,
) -> Iterator[str]:
  """Yields what the user should know of a conversion."""
  if adapters and options.lora_alpha is None:
    yield (
      "the checkpoint records no LoRA alpha: it is left out of the metadata; "
      "give it with --lora_alpha"
    )
  if adapters and adapters.is_adapter_only:
    yield (
      "LoRA leaves only: MaxText 0.2.5 can't resume from these alone; they "
      "keep the adapters and their optimizer"
    )
  if not adapters and options.lora_alpha is not None:
    yield "--lora_alpha has no effect: the checkpoint has no LoRA leaves"
  yield from _note_use(state, mode)
  if options.layer_pattern and not options.model_name:
    yield (
      "that the layers form one stack is taken on your word "
      "(--layer_pattern=flat): nothing in a checkpoint confirms it"
    )
  yield from _note_frozen(state)
  yield from _note_ambiguous(state)
  auxiliary = [dotted(key.path) for key, _ in state.with_role(Role.AUXILIARY)]
  if auxiliary:
    where = "params" if state.optimizer is None else "nnx_aux"
    yield (
      f"{len(auxiliary)} leaves that are no weights go to {where} by the "
      f"table of MaxText's variables, such as {auxiliary[0]}"
    )


def _note_use(state: State, mode: ScanMode) -> Iterator[str]:
  """Yields how MaxText must be run with the target."""
  if mode != "unknown":
    yield f"run MaxText with scan_layers={mode == 'scanned'}"
  if state.step is None:
    yield (
      "weights only: load them by load_parameters_path=<TARGET>/<N>/items; as "
      "a run directory they would start at step 0 with fresh moments"
    )


def _note_frozen(state: State) -> Iterator[str]:
  """Yields a note if some weights have moments and others have none."""
  if state.optimizer is None:
    return
  moving = {key.path for key, _ in state.with_role(Role.MOMENT)}
  frozen = [path for path in state.weight_paths if path not in moving]
  if frozen:
    yield (
      f"{len(frozen)} weights have no moments, such as {dotted(frozen[0])}: "
      "the source did not train them; MaxText starts theirs from zero"
    )


def _note_ambiguous(state: State) -> Iterator[str]:
  """Yields a note where other optimizers keep the same state as AdamW."""
  own_schedule = StateKey(Role.SCHEDULE_COUNT) in state.leaves
  if state.optimizer == "adamw" and not own_schedule:
    yield (
      "read as AdamW with a constant or injected rate; adam, lamb, nadamw and "
      "others of their kind keep the same state, and nothing tells them apart"
    )
