"""What a plan recognised, and what the user should know of it."""

from collections import Counter
from collections.abc import Iterable, Iterator

from relayout.convert import forms
from relayout.convert.form import Form
from relayout.convert.options import Options
from relayout.convert.placing import Rules
from relayout.convert.plan import ItemPlan, Stored, TargetLeaf
from relayout.convert.source import Source
from relayout.layouts import lora
from relayout.layouts.state import Role, State, StateKey
from relayout.tree.key_path import dotted


def facts(
  source: Source,
  before: Form,
  after: Form,
  rules: Rules,
  adapters: lora.Lora | None,
) -> tuple[tuple[str, str], ...]:
  """Returns what was recognised, as (name, value)."""
  state = source.state
  found = [
    ("layout", _change(source.layout, rules.layout.name)),
    ("layers", _change(_form(before), _form(after))),
    ("adapter level", _change(state.adapter or "none", _adapter(rules))),
  ]
  if after.grouping:
    found.append(("layer pattern", after.grouping.pattern))
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


def _change(before: str, after: str) -> str:
  return before if before == after else f"{before} -> {after}"


def _form(form: Form) -> str:
  if form.mode != "scanned" or form.scan_axis == forms.DEFAULT_SCAN_AXIS:
    return form.mode
  return f"scanned at axis {form.scan_axis}"


def _adapter(rules: Rules) -> str:
  return rules.naming.adapter or "none"


def notes(
  source: Source,
  state: State,
  adapters: lora.Lora | None,
  after: Form,
  options: Options,
) -> Iterator[str]:
  """Yields what the user should know of a conversion."""
  yield from _note_lora(adapters, options)
  yield from _note_use(source, state, after, options)
  if options.layer_pattern and not options.model_name:
    yield (
      f"that the layers form stacks as {options.layer_pattern} is taken on "
      "your word (--layer_pattern): nothing in a checkpoint confirms it"
    )
  yield from _note_frozen(state)
  yield from _note_ambiguous(state)
  auxiliary = [dotted(key.path) for key, _ in state.with_role(Role.AUXILIARY)]
  if auxiliary and options.to == "maxtext":
    where = "params" if state.optimizer is None else "nnx_aux"
    yield (
      f"{len(auxiliary)} leaves that are no weights go to {where} by the "
      f"table of MaxText's variables, such as {auxiliary[0]}"
    )


def _note_lora(adapters: lora.Lora | None, options: Options) -> Iterator[str]:
  if adapters and options.lora_alpha is None:
    yield (
      "the checkpoint records no LoRA alpha: it is left out of the metadata; "
      "give it with --lora_alpha"
    )
  if adapters and adapters.is_adapter_only and options.to == "maxtext":
    yield (
      "LoRA leaves only: MaxText 0.2.5 can't resume from these alone; they "
      "keep the adapters and their optimizer"
    )
  if not adapters and options.lora_alpha is not None:
    yield "--lora_alpha has no effect: the checkpoint has no LoRA leaves"


def _note_use(
  source: Source, state: State, after: Form, options: Options
) -> Iterator[str]:
  """Yields how the target's trainer must be run."""
  if after.mode != "unknown":
    who = "MaxText" if options.to == "maxtext" else "the trainer"
    yield f"run {who} with scan_layers={after.mode == 'scanned'}" + (
      f" param_scan_axis={after.scan_axis}"
      if after.mode == "scanned" and after.scan_axis != forms.DEFAULT_SCAN_AXIS
      else ""
    )
  recorded = source.metadata and source.metadata.custom_metadata.get(
    "scan_layers"
  )
  mode = "scanned" if recorded else "unscanned"
  if isinstance(recorded, bool) and source.state.weight_paths:
    yield from _note_recorded(source, mode)
  if options.to == "maxtext" and state.step is None:
    yield (
      "weights only: load them by load_parameters_path=<TARGET>/<N>/items; as "
      "a run directory they would start at step 0 with fresh moments"
    )


def _note_recorded(source: Source, recorded: str) -> Iterator[str]:
  found = forms.mode_of(source)
  if found not in ("unknown", recorded):
    yield (
      f"{source.path} records scan_layers={recorded == 'scanned'}, but its "
      f"leaves are named as those of a model that is {found}; the names decide"
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


_LOSSLESS = frozenset(
  {
    ("bfloat16", "float32"),
    ("float16", "float32"),
    ("bfloat16", "float64"),
    ("float16", "float64"),
    ("float32", "float64"),
  }
)


def note_casts(items: Iterable[ItemPlan]) -> Iterator[str]:
  """Yields which data types change, and whether that loses anything."""
  leaves = [leaf for item in items for leaf in item.leaves]
  for (old, new), number in sorted(Counter(_casts(leaves)).items()):
    loss = "exact" if (old, new) in _LOSSLESS else "lossy: rounded to nearest"
    yield f"{number} arrays become {new} from {old} (--dtype; {loss})"


def _casts(leaves: Iterable[TargetLeaf]) -> Iterator[tuple[str, str]]:
  for leaf in leaves:
    if isinstance(leaf.origin, Stored) and leaf.spec is not None:
      spec = leaf.origin.slots[0].source.leaf.spec
      if spec is not None and spec.dtype != leaf.spec.dtype:
        yield spec.dtype, leaf.spec.dtype
