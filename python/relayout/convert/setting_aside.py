"""Sets leaves aside that the target's layout has no place for, and puts back.

See `aside` for what becomes of them on disk.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from relayout.convert import aside
from relayout.convert.aside import Origin
from relayout.convert.form import Form
from relayout.convert.placing import Rules
from relayout.convert.plan import Derived, ItemPlan, Slot, Stored, TargetLeaf
from relayout.convert.source import Source
from relayout.layouts.layout import Naming, Place
from relayout.layouts.state import (
  Dropped,
  LayoutName,
  OptimizerKind,
  Role,
  StateKey,
  StoredLeaf,
)
from relayout.layouts.wrappers import Wrappers
from relayout.metadata.sharding import single_device_sharding
from relayout.metadata.step_metadata import PYTREE_HANDLER
from relayout.tree.key_path import TypedPath, dotted

type Leaves = dict[str, dict[str, TargetLeaf]]
"""Leaves by item and name."""


def origin_of(source: Source, before: Form) -> Origin:
  """Returns the layout and form that a source is in."""
  state, metadata = source.state, source.metadata
  return Origin(
    layout=source.layout,
    mode=before.mode,
    scan_axis=before.scan_axis,
    adapter=state.adapter,
    wrappers=state.wrappers,
    has_schedule=StateKey(Role.SCHEDULE_COUNT) in state.leaves,
    updates=state.step.value if state.step else None,
    custom_metadata=dict(metadata.custom_metadata if metadata else {}),
  )


def known_origin(
  source: Source, before: Form, layout: LayoutName, after: Form
) -> Origin | None:
  """Returns what is known of a trainer of the target's layout, or None.

  That is of the source's own trainer, or of one that an earlier conversion
  came from; one whose layers are stored as in the target is preferred.
  """
  known = dict(source.aside.origins) if source.aside else {}
  own = origin_of(source, before)
  known.setdefault(own.key, own)
  fitting = [origin for origin in known.values() if origin.layout == layout]
  fitting.sort(key=lambda origin: origin.mode != after.mode)
  return fitting[0] if fitting else None


def naming_of(origin: Origin, optimizer: OptimizerKind | None) -> Naming:
  """Returns what the names in a known layout depend on."""
  wrappers = Wrappers(tuple(origin.wrappers))
  return Naming(optimizer, origin.adapter, wrappers, origin.has_schedule)


def put_back(
  source: Source,
  origin: Origin | None,
  rules: Rules,
  before: Form,
  after: Form,
  barred: Iterable[Dropped],
  leaves: Leaves,
) -> bool:
  """Adds leaves that were in the target's layout before.

  Args:
    source: The source.
    origin: What is known of the target's layout.
    rules: Of the target.
    before: Form of the source.
    after: Form of the target.
    barred: Leaves that must not be in it.
    leaves: The target's leaves so far; grows.

  Returns:
    Whether the target is in the very form that they were set aside from.
  """
  step = source.state.step
  updates = step.value if step else None
  if (
    origin is None or origin.updates != updates or not _has_names(origin, rules)
  ):
    return False
  same = after.is_stored_like(Form(origin.mode, origin.scan_axis))
  fitting = {origin.key: same}
  if origin.layout == source.layout:
    fitting[""] = after.is_stored_like(before)
  for (key, place), stored in _homeless(source, leaves, barred).items():
    assert stored.leaf.spec is not None
    item = leaves.get(place.item)
    if key not in fitting or item is None:
      continue
    if stored.leaf.spec.shape and not fitting[key]:
      continue
    name = dotted(place.path.names)
    if key or name not in item or isinstance(item[name].origin, Derived):
      item[name] = _as_stored(place.path, stored)
  return same


def _has_names(origin: Origin, rules: Rules) -> bool:
  """Whether names of that origin are those of the target."""
  naming = rules.naming
  if rules.layout.name == "maxtext":
    return True
  if naming.optimizer is None:
    return origin.adapter == naming.adapter
  return naming_of(origin, naming.optimizer) == naming


def item(
  source: Source,
  before: Form,
  unwanted: Iterable[Dropped],
  leaves: Leaves,
) -> ItemPlan | None:
  """Returns the item of what is set aside, or None if there is nothing."""
  kept = _homeless(source, leaves, unwanted)
  formats = Counter(
    stored.leaf.spec.zarr_format for stored in kept.values() if stored.leaf.spec
  )
  if not formats:
    return None
  [(most, _)] = formats.most_common(1)
  own = origin_of(source, before)
  origins = dict(source.aside.origins) if source.aside else {}
  found: dict[str, TargetLeaf] = {}
  for (key, place), stored in kept.items():
    if stored.leaf.spec and stored.leaf.spec.zarr_format == most:
      path = aside.aside_path(origins[key] if key else own, place)
      found.setdefault(dotted(path.names), _as_stored(path, stored))
  origins.setdefault(own.key, own)
  return ItemPlan(
    name=aside.ITEM,
    handler=PYTREE_HANDLER,
    leaves=tuple(sorted(found.values(), key=lambda leaf: leaf.path.names)),
    custom_metadata=aside.record(origins.values()),
  )


type _Found = Mapping[tuple[str, Place], StoredLeaf]
"""Leaves by the key of their origin, "" for the source itself, and place."""


def _homeless(
  source: Source, leaves: Leaves, without: Iterable[Dropped]
) -> _Found:
  """Returns the source's leaves that the target has not, by where they were."""
  used = {
    stored.label
    for found in leaves.values()
    for leaf in found.values()
    if isinstance(leaf.origin, Stored)
    for stored in leaf.origin.sources
  }
  used.update(dropped.leaf.label for dropped in without)
  return {
    where: stored
    for where, stored in _all_leaves(source)
    if stored.label not in used
  }


def _all_leaves(
  source: Source,
) -> Iterator[tuple[tuple[str, Place], StoredLeaf]]:
  """Yields what was set aside first: it is older, and exact."""
  if source.aside:
    for key, found in source.aside.leaves.items():
      for place, stored in found.items():
        yield (key, place), stored
  for opened in source.items:
    if source.aside and opened is source.aside.item:
      continue
    for leaf in opened.leaves:
      if leaf.spec is not None:
        yield ("", Place(opened.name, leaf.path)), StoredLeaf(opened, leaf)


def _as_stored(path: TypedPath, stored: StoredLeaf) -> TargetLeaf:
  leaf = stored.leaf
  assert leaf.spec is not None
  return TargetLeaf(
    path=path,
    spec=leaf.spec,
    origin=Stored((Slot(stored),)),
    write_shape=leaf.write_shape or leaf.spec.chunk_shape,
    random_key_impl=leaf.random_key_impl,
    sharding=leaf.sharding or single_device_sharding(),
  )
