"""Plans the conversion of one step from what was read of it."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from relayout.convert import (
  choosing,
  forms,
  placing,
  remarks,
  setting_aside,
  step_metadata,
  tunix_rng,
  ways,
)
from relayout.convert.aside import Origin
from relayout.convert.choosing import Choice
from relayout.convert.composition import compose
from relayout.convert.compression import parse_compression
from relayout.convert.form import Form
from relayout.convert.options import Options
from relayout.convert.placing import Placed, Rules
from relayout.convert.plan import ItemPlan, StepPlan, Stored, TargetLeaf
from relayout.convert.reference import Reference, like
from relayout.convert.source import Source
from relayout.errors import LayoutError, UnsupportedError
from relayout.layouts import lora
from relayout.layouts.layout import Naming
from relayout.layouts.registry import LAYOUTS
from relayout.layouts.state import Dropped, Role, State, StateKey
from relayout.layouts.wrappers import parse_wrappers
from relayout.tree.key_path import dotted

_ROLES = {"weights": Role.WEIGHT, "moments": Role.MOMENT}
_DEFAULT_WRAPPERS = parse_wrappers("clip")


def plan_step(
  source: Source, options: Options, reference: Reference | None = None
) -> StepPlan:
  """Returns what `source` becomes.

  Args:
    source: The step or item.
    options: What is asked for.
    reference: The checkpoint that the target shall look like, or None.

  Raises:
    LayoutError: If leaves do not fit together, or an update is unfinished.
    OptionError: If options contradict the checkpoint or each other.
    UnsupportedError: If the conversion is none that relayout can do.
  """
  _check_optimizer(source, options)
  plan = plan_towards(source, options, reference)
  names = LAYOUTS[plan.layout].items
  for item in plan.targets:
    if item.name in names:
      _check_one_format(item.leaves)
  if reference is None:
    return plan
  targets = tuple(
    like(item, reference) if item.name in names else item
    for item in plan.targets
  )
  return dataclasses.replace(plan, targets=targets)


def plan_towards(
  source: Source, options: Options, reference: Reference | None
) -> StepPlan:
  """Returns what `source` becomes, as near to a reference as it can.

  The result may still differ from the reference; other arguments and errors
  are those of `plan_step`.
  """
  before, after = forms.source_and_target(source, options)
  choice = choosing.choose(source, before, after, options)
  state = choosing.state_of(source.state, choice, options)
  origin = setting_aside.known_origin(
    source, before, LAYOUTS[options.to].name, after
  )
  rules = _rules(source, origin, state, options, reference)
  placed = _stored(state, before, after, rules)
  leaves = _by_item(
    [
      *placed.values(),
      *placing.extra_leaves(_in_form(state, placed), _leaves(placed), rules),
      *_derived_rng(source, before, after, rules, options),
    ]
  )
  barred = (*choice.unfit, *choice.unwanted)
  is_back = not options.params_only and setting_aside.put_back(
    source, origin, rules, before, after, barred, leaves
  )
  kept = None
  if not options.params_only:
    kept = setting_aside.item(source, before, choice.unwanted, leaves)
  if reference is not None:
    _add_rng_like(reference, source, rules, leaves)
  items = [_item(rules, name, leaves[name]) for name in leaves]
  adapters = lora.describe(source.state)
  metadata = step_metadata.custom(source, after, adapters, options)
  if is_back and origin and source.layout != options.to:
    metadata = step_metadata.as_before(origin)
  return StepPlan(
    source=source.path,
    source_number=source.number,
    target_number=target_number(source, options),
    layout=rules.layout.name,
    items=source.items,
    targets=(*items, *((kept,) if kept else ())),
    carried=source.carried,
    dropped=_still_dropped(choice, items),
    source_mode=before.mode,
    target_mode=after.mode,
    custom_metadata=metadata,
    facts=remarks.facts(source, before, after, rules, adapters),
    notes=(
      *source.notes,
      *source.state.notes,
      *remarks.notes(source, state, adapters, after, options),
      *remarks.note_casts(items),
    ),
  )


def _still_dropped(
  choice: Choice, items: Sequence[ItemPlan]
) -> tuple[Dropped, ...]:
  """Returns the leaves that none of the layout's items holds in the end."""
  used = {
    stored.label
    for item in items
    for leaf in item.leaves
    if isinstance(leaf.origin, Stored)
    for stored in leaf.origin.sources
  }
  return tuple(
    dropped for dropped in choice.dropped if dropped.leaf.label not in used
  )


def _check_optimizer(source: Source, options: Options) -> None:
  """Refuses a step whose optimizer keeps nothing; MaxText has none such."""
  if options.params_only or source.layout == options.to:
    return
  if source.state.step is not None and source.state.optimizer is None:
    raise LayoutError(
      f"{source.path}: holds the step and no moments, so the optimizer is "
      "neither AdamW nor adam_pax; MaxText would go on with moments of zero, "
      "and Tunix refuse. To convert the weights alone, pass --params_only"
    )


def target_number(source: Source, options: Options) -> int:
  """Returns the number of the target's step directory."""
  if options.step_numbering == "keep" and source.number is not None:
    return source.number
  if options.to == "tunix" and options.params_only:
    return 0
  if source.state.step is not None:
    return LAYOUTS[options.to].number(source.state.step.value)
  if source.number is None:
    return 0
  if source.layout == options.to:
    return source.number
  updates = source.number + (source.layout == "maxtext")
  return LAYOUTS[options.to].number(updates)


def _rules(
  source: Source,
  origin: Origin | None,
  state: State,
  options: Options,
  reference: Reference | None,
) -> Rules:
  return Rules(
    layout=LAYOUTS[options.to],
    naming=_naming(origin, state, options, reference),
    wishes=ways.Wishes(
      compression=parse_compression(options.compression),
      chunk_bytes=options.chunk_bytes,
      single_layer_chunks=options.chunk_like == "layer",
      memory_limit=options.memory_limit,
    ),
    dtypes={_ROLES[kind]: name for kind, name in options.dtypes.items()},
    zarr_format=_zarr_format(source),
    reference=reference,
  )


def _naming(
  origin: Origin | None,
  state: State,
  options: Options,
  reference: Reference | None,
) -> Naming:
  """Returns what the target's names depend on: as asked for, or as known."""
  naming = Naming(state.optimizer)
  if options.to == "maxtext":
    return naming
  if origin is not None:
    naming = setting_aside.naming_of(origin, state.optimizer)
  else:
    naming = dataclasses.replace(naming, wrappers=_DEFAULT_WRAPPERS)
  if options.adapter is not None:
    naming = dataclasses.replace(naming, adapter=options.adapter)
  if options.optimizer_wrappers is not None:
    wrappers = parse_wrappers(options.optimizer_wrappers)
    naming = dataclasses.replace(naming, wrappers=wrappers, has_schedule=True)
  if reference is not None:
    schedule = StateKey(Role.SCHEDULE_COUNT) in reference.source.state.leaves
    naming = dataclasses.replace(naming, has_schedule=schedule)
  return naming


def _stored(
  state: State, before: Form, after: Form, rules: Rules
) -> dict[StateKey, Placed]:
  """Returns the leaves that are stored in the source, by what they are."""
  result: dict[StateKey, Placed] = {}
  for composed in compose(state.leaves, before, after):
    if composed.key in result:
      raise LayoutError(
        f"two leaves would both be {composed.key}: the checkpoint holds leaves "
        "of two models"
      )
    leaf = placing.stored_leaf(composed, rules)
    if leaf is not None:
      result[composed.key] = leaf
  return result


def _derived_rng(
  source: Source, before: Form, after: Form, rules: Rules, options: Options
) -> Iterator[Placed]:
  """Yields rng leaves for a Tunix trainer where the source's can't stay."""
  if options.to != "tunix" or options.rng == "keep":
    return
  if choosing.comes_from_tunix(source) and before.mode == after.mode:
    return
  for found in tunix_rng.derive(source.state, before, after):
    leaf = placing.derived_leaf(*found, rules)
    if leaf is not None:
      yield leaf


def _in_form(state: State, placed: Mapping[StateKey, Placed]) -> State:
  """Returns the state with its leaves called as in the target's form."""
  leaves = {key: leaf.origin.sources[0] for key, (_, leaf) in placed.items()}
  return dataclasses.replace(state, leaves=leaves)


def _leaves(placed: Mapping[StateKey, Placed]) -> dict[StateKey, TargetLeaf]:
  return {key: leaf for key, (_, leaf) in placed.items()}


def _by_item(placed: Iterable[Placed]) -> dict[str, dict[str, TargetLeaf]]:
  """Returns the leaves of each item by name."""
  result: dict[str, dict[str, TargetLeaf]] = {}
  for item, leaf in placed:
    result.setdefault(item, {})[leaf.name] = leaf
  return result


def _add_rng_like(
  reference: Reference,
  source: Source,
  rules: Rules,
  leaves: dict[str, dict[str, TargetLeaf]],
) -> None:
  """Adds rng leaves that a reference has and the target lacks so far."""
  wanted = {}
  for key, shape in reference.rng_shapes().items():
    place = rules.layout.place(key, rules.naming)
    if place and dotted(place.path.names) not in leaves.get(place.item, {}):
      wanted[key] = shape
  for found in tunix_rng.derive_like(source.state, wanted):
    placed = placing.derived_leaf(*found, rules)
    if placed is not None:
      leaves.setdefault(placed[0], {})[placed[1].name] = placed[1]


def _item(
  rules: Rules, name: str, leaves: Mapping[str, TargetLeaf]
) -> ItemPlan:
  ordered = tuple(sorted(leaves.values(), key=lambda leaf: leaf.path.names))
  zarr_format = next((x.spec.zarr_format for x in ordered if x.spec), 3)
  return ItemPlan(name, rules.layout.handlers[zarr_format], ordered)


def _zarr_format(source: Source) -> Literal[2, 3]:
  """Returns the format of the source's first array."""
  for item in source.items:
    for leaf in item.leaves:
      if leaf.spec:
        return leaf.spec.zarr_format
  return 3


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
