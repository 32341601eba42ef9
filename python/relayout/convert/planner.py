"""Plans the conversion of one step from what was read of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from relayout.convert import grouping, remarks
from relayout.convert.options import Options
from relayout.convert.plan import (
  Derived,
  Moved,
  Origin,
  Stacked,
  StepPlan,
  TargetLeaf,
)
from relayout.convert.source import Source
from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  UnsupportedError,
)
from relayout.layouts import lora, maxtext, rng, stacking
from relayout.layouts.state import (
  Counter,
  Dropped,
  Role,
  ScanMode,
  State,
  StateKey,
  StoredLeaf,
)
from relayout.metadata.sharding import single_device_sharding, stacked_sharding
from relayout.metadata.zarr_scalar import scalar_array
from relayout.metadata.zarr_stack import stack_array_specs
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import TypedPath

_INT32_MAX = 2**31 - 1


def plan_step(source: Source, options: Options) -> StepPlan:
  """Returns what `source` becomes in MaxText's layout.

  Raises:
    LayoutError: If leaves do not fit together, or an update is unfinished.
    OptionError: If options contradict the checkpoint or each other.
    UnsupportedError: If the conversion is none that relayout can do.
  """
  state = source.state
  _check_optimizer(source)
  source_mode = stacking.scan_mode(state.weight_paths)
  mode = grouping.target_mode(source_mode, options)
  chosen, dropped = _choose(state, source_mode, mode, options)
  stacking.check_unmixed(chosen)
  groups = grouping.group(
    list(chosen), stack=mode != source_mode, options=options
  )
  leaves = tuple(
    sorted(
      (
        *_stored_leaves(groups, chosen, state),
        *_derived_leaves(state, source),
      ),
      key=lambda leaf: leaf.path.names,
    )
  )
  _check_one_format(leaves)
  adapters = lora.describe(state)
  return StepPlan(
    source=source.path,
    source_number=source.number,
    target_number=target_number(source, options),
    items=source.items,
    leaves=leaves,
    dropped=dropped,
    source_mode=source_mode,
    target_mode=mode,
    custom_metadata=_custom_metadata(source, mode, adapters, options),
    facts=remarks.facts(state, source_mode, mode, adapters),
    notes=(
      *source.notes,
      *state.notes,
      *remarks.notes(state, adapters, mode, options),
    ),
  )


def _check_optimizer(source: Source) -> None:
  """Refuses a step whose optimizer keeps nothing; MaxText has none such."""
  if source.state.step is not None and source.state.optimizer is None:
    raise LayoutError(
      f"{source.path}: optimizer_state holds the step and no moments, so the "
      "optimizer is neither AdamW nor adam_pax; MaxText would go on with "
      "moments of zero. To convert the weights alone, pass --params_only"
    )


def target_number(source: Source, options: Options) -> int:
  """Returns the number of the target's step directory.

  MaxText's directory N holds N + 1 updates; 0 stays 0.
  """
  updates = source.state.step.value if source.state.step else source.number
  if options.step_numbering == "keep" and source.number is not None:
    return source.number
  if updates is None:
    return 0
  return max(updates - 1, 0)


def _choose(
  state: State, source_mode: ScanMode, mode: ScanMode, options: Options
) -> tuple[dict[StateKey, StoredLeaf], tuple[Dropped, ...]]:
  """Splits the state into leaves that go on and leaves that are left out."""
  lost = _unfinished(state, options)
  out = [_explain(item, lost) for item in state.dropped]
  reasons = _reasons_by_role(state, source_mode, mode, options)
  chosen = {}
  for key, stored in state.leaves.items():
    if key.role in reasons:
      out.append(Dropped(stored, reasons[key.role]))
    else:
      chosen[key] = stored
  return chosen, tuple(out)


def _reasons_by_role(
  state: State, source_mode: ScanMode, mode: ScanMode, options: Options
) -> Mapping[Role, str]:
  keys = [
    leaf for key, leaf in state.with_role(Role.RNG) if key.path[-1] == "key"
  ]
  reason = "weights only"
  if not options.params_only and state.optimizer is not None:
    reason = rng.reason_to_leave_out(keys, source_mode, mode)
  return {Role.RNG: reason} if reason else {}


def _unfinished(state: State, options: Options) -> int:
  """Returns the micro-steps whose gradients are lost.

  Raises:
    LayoutError: If there are any and `force` is not set.
  """
  mini_step = state.accumulation.mini_step if state.accumulation else 0
  if mini_step and not options.force:
    raise LayoutError(
      f"gradient accumulation is unfinished: mini_step is {mini_step}, so the "
      f"gradients of {mini_step} micro-steps since the last update would be "
      "lost (MaxText keeps none). Convert a step that ends an update, or pass "
      "--force to lose them"
    )
  return mini_step


def _explain(dropped: Dropped, lost: int) -> Dropped:
  """Says what is really lost where accumulated gradients are left out."""
  if not lost or ".acc_grads." not in f".{dropped.leaf.leaf.name}.":
    return dropped
  reason = f"gradients of {lost} micro-steps since the last update, lost"
  return Dropped(dropped.leaf, f"{reason} (--force)")


def _stored_leaves(
  groups: grouping.Groups,
  chosen: Mapping[StateKey, StoredLeaf],
  state: State,
) -> Iterator[TargetLeaf]:
  """Yields the leaves whose values are stored in the source."""
  for key, parts in groups.items():
    sources = [chosen[part] for part in parts]
    place = _place(key, state)
    stacked = key not in chosen
    spec, origin = _stack(sources) if stacked else _move(sources[0])
    yield TargetLeaf(
      path=place,
      spec=spec,
      origin=origin,
      write_shape=_write_shape(sources[0], origin, spec),
      random_key_impl=sources[0].leaf.random_key_impl,
      sharding=_sharding(sources[0], origin),
    )


def _place(key: StateKey, state: State) -> TypedPath:
  """Places a leaf; non-weights go to `params` when only weights are written.

  MaxText's loader of weights alone looks for them there and nowhere else.
  """
  if key.role is Role.AUXILIARY and state.optimizer is None:
    key = StateKey(Role.WEIGHT, key.path)
  return maxtext.place(key, state.optimizer)


def _move(stored: StoredLeaf) -> tuple[ArraySpec, Origin]:
  assert stored.leaf.spec is not None
  return stored.leaf.spec, Moved(stored)


def _stack(sources: Sequence[StoredLeaf]) -> tuple[ArraySpec, Origin]:
  specs = [stored.leaf.spec for stored in sources]
  known = [spec for spec in specs if spec is not None]
  axis = stacking.scan_axis(known[0].rank)
  labels = [stored.label for stored in sources]
  return stack_array_specs(known, axis, labels), Stacked(tuple(sources), axis)


def _write_shape(
  stored: StoredLeaf, origin: Origin, spec: ArraySpec
) -> tuple[int, ...]:
  """Returns the shape of a device's part, which chunks may subdivide."""
  shape = stored.leaf.write_shape
  if shape is None:
    return spec.chunk_shape
  if isinstance(origin, Stacked):
    return (*shape[: origin.axis], 1, *shape[origin.axis :])
  return shape


def _sharding(stored: StoredLeaf, origin: Origin) -> str:
  text, spec = stored.leaf.sharding, stored.leaf.spec
  if text is None or spec is None:
    return single_device_sharding()
  if isinstance(origin, Stacked):
    try:
      return stacked_sharding(text, origin.axis, spec.rank)
    except CorruptCheckpointError as error:
      raise CorruptCheckpointError(
        f"{stored.item.directory}: {stored.leaf.name}: {error}"
      ) from error
  return text


def _derived_leaves(state: State, source: Source) -> Iterator[TargetLeaf]:
  """Yields the leaves that a rule gives: step, schedule count, None."""
  zarr_format = _zarr_format(source)
  if state.step is not None:
    yield _counter(StateKey(Role.STEP), state.step, state, zarr_format)
  if state.schedule_count is not None:
    yield _counter(
      StateKey(Role.SCHEDULE_COUNT), state.schedule_count, state, zarr_format
    )
  if state.optimizer == "adamw":
    yield TargetLeaf(
      maxtext.STATELESS_MEMBER,
      None,
      Derived("AdamW's member without state is None", None),
    )


def _zarr_format(source: Source) -> Literal[2, 3]:
  """Returns the format of the source's first array."""
  for item in source.items:
    for leaf in item.leaves:
      if leaf.spec:
        return leaf.spec.zarr_format
  return 3


def _counter(
  key: StateKey, counter: Counter, state: State, zarr_format: Literal[2, 3]
) -> TargetLeaf:
  if not 0 <= counter.value <= _INT32_MAX:
    raise LayoutError(f"{key}: {counter.value} does not fit int32")
  stored = next((s for s in counter.sources if s.leaf.sharding), None)
  return TargetLeaf(
    path=maxtext.place(key, state.optimizer),
    spec=scalar_array(maxtext.COUNT_DTYPE, zarr_format),
    origin=Derived(counter.rule, counter.value, counter.sources),
    sharding=(stored and stored.leaf.sharding) or single_device_sharding(),
  )


def _check_one_format(leaves: Sequence[TargetLeaf]) -> None:
  by_format: dict[int, str] = {}
  for leaf in leaves:
    if leaf.spec:
      by_format.setdefault(leaf.spec.zarr_format, leaf.name)
  if len(by_format) > 1:
    raise UnsupportedError(
      f"{by_format[2]} is stored as zarr v2 and {by_format[3]} as zarr v3; one "
      "item can hold one of the two only. Convert with --params_only"
    )


def _custom_metadata(
  source: Source,
  mode: ScanMode,
  adapters: lora.Lora | None,
  options: Options,
) -> dict[str, Any]:
  metadata = dict(source.metadata.custom_metadata if source.metadata else {})
  if mode != "unknown":
    metadata["scan_layers"] = mode == "scanned"
  if adapters:
    metadata["lora"] = _lora_metadata(adapters, options)
  return metadata


def _lora_metadata(adapters: lora.Lora, options: Options) -> dict[str, Any]:
  """Names as in MaxText's `lora` configuration; alpha only if it is known."""
  names = (target.replace(".", "/") for target in adapters.targets)
  modules = "|".join(map(re.escape, names))
  known: dict[str, Any] = {
    "enable_lora": True,
    "lora_rank": adapters.rank,
    "lora_module_path": f"(.*/)?({modules})",
  }
  if options.lora_alpha is not None:
    known["lora_alpha"] = options.lora_alpha
  return known
