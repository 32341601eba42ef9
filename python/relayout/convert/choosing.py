"""Which leaves of a source go into the target, and why others do not."""

import dataclasses
from collections.abc import Mapping, Sequence

from relayout.convert import tunix_rng
from relayout.convert.form import Form
from relayout.convert.options import Options
from relayout.convert.selection import Selection, split
from relayout.convert.source import Source
from relayout.errors import LayoutError, OptionError
from relayout.layouts import rng
from relayout.layouts.optimizer import SLOTS
from relayout.layouts.state import Dropped, Role, State, StateKey, StoredLeaf

PARAMS_ONLY = "weights only (--params_only)"

_OF_WEIGHTS = (Role.WEIGHT, Role.AUXILIARY)


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
  """A source's leaves, sorted by what becomes of them.

  Attributes:
    leaves: Those that go on.
    homeless: Those that the target's layout or form has no place for.
    unfit: Those that the target's trainer could not read.
    unwanted: Those that were asked to be left out.
  """

  leaves: Mapping[StateKey, StoredLeaf]
  homeless: tuple[Dropped, ...]
  unfit: tuple[Dropped, ...]
  unwanted: tuple[Dropped, ...]

  @property
  def dropped(self) -> tuple[Dropped, ...]:
    """All that are no leaves of the target's layout."""
    return (*self.homeless, *self.unfit, *self.unwanted)


def choose(
  source: Source, before: Form, after: Form, options: Options
) -> Choice:
  """Sorts the leaves of a source.

  Raises:
    LayoutError: If the gradients of an unfinished update would be lost.
    OptionError: If a pattern matches nothing.
  """
  state = source.state
  lost = _unfinished(source, before, after, options)
  selection = Selection(options.keep, options.drop)
  chosen, unwanted = split(state.leaves.items(), selection)
  selection.check_used()
  _check_optimizer(state, chosen, unwanted)
  if options.params_only:
    unwanted += _other_than_weights(state, chosen, options)
  reasons = _unfit_rng(source, before, after, options)
  unfit = [
    Dropped(chosen.pop(key), reason)
    for key, reason in reasons.items()
    if key in chosen
  ]
  homeless = [_explain(item, lost) for item in state.dropped]
  return Choice(chosen, tuple(homeless), tuple(unfit), tuple(unwanted))


def _check_optimizer(
  state: State,
  chosen: Mapping[StateKey, StoredLeaf],
  unwanted: Sequence[Dropped],
) -> None:
  """Refuses to leave out a part of what an optimizer needs.

  Raises:
    OptionError: If a count, or one of a weight's moments, would be missing.
  """
  if state.optimizer is None:
    return
  needed = [StateKey(Role.COUNT)]
  for key in chosen:
    if key.role is Role.MOMENT:
      needed += [dataclasses.replace(key, slot=slot) for slot in SLOTS]
  for key in needed:
    if key in state.leaves and key not in chosen:
      label = state.leaves[key].label
      reason = next(d.reason for d in unwanted if d.leaf.label == label)
      raise OptionError(
        f"{label} would be left out ({reason}): a trainer takes an optimizer "
        "whose state is incomplete, or refuses it. Leave out all of a weight's "
        "moments, or pass --params_only"
      )


def _other_than_weights(
  state: State, chosen: dict[StateKey, StoredLeaf], options: Options
) -> list[Dropped]:
  """Takes out of `chosen` what is no weight; returns it with the reason.

  Tunix keeps rng state with the weights, and wants it there.
  """
  stays = {*_OF_WEIGHTS} | ({Role.RNG} if options.to == "tunix" else set())
  others = [key for key in chosen if key.role not in stays]
  found = [chosen.pop(key) for key in others]
  counters = (state.step, state.schedule_count)
  found += [stored for c in counters if c for stored in c.sources]
  return [Dropped(stored, PARAMS_ONLY) for stored in found]


def state_of(state: State, choice: Choice, options: Options) -> State:
  """Returns the state that the target holds, its leaves as in the source."""
  if options.params_only:
    state = dataclasses.replace(
      state, optimizer=None, step=None, schedule_count=None, accumulation=None
    )
  return dataclasses.replace(state, leaves=choice.leaves)


def _unfit_rng(
  source: Source, before: Form, after: Form, options: Options
) -> Mapping[StateKey, str]:
  """Returns the rng leaves that don't go on, each with the reason."""
  state = source.state
  if options.to == "tunix":
    if options.rng == "keep" and before.mode == after.mode:
      return {}
    return tunix_rng.unfit(
      state, before, after, is_tunix=comes_from_tunix(source)
    )
  leaves = dict(state.with_role(Role.RNG))
  keys = [leaf for key, leaf in leaves.items() if key.path[-1] == "key"]
  reason = rng.reason_to_leave_out(keys, before.mode, after.mode)
  if source.layout == "tunix" and state.optimizer is None:
    reason = "weights only"
  return dict.fromkeys(leaves, reason) if reason else {}


def comes_from_tunix(source: Source) -> bool:
  """Whether rng state is that of a Tunix trainer, as it was then or is now."""
  known = source.aside.origins.values() if source.aside else ()
  return source.layout == "tunix" or any(o.layout == "tunix" for o in known)


def _unfinished(
  source: Source, before: Form, after: Form, options: Options
) -> int:
  """Returns the micro-steps whose gradients the target's trainer won't see.

  Raises:
    LayoutError: If there are any and `force` is not set.
  """
  accumulation = source.state.accumulation
  mini_step = accumulation.mini_step if accumulation else 0
  if source.layout == options.to and before.is_stored_like(after):
    return 0
  if mini_step and not options.force and not options.params_only:
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
  reason = (
    f"gradients of {lost} micro-steps since the last update, lost to the "
    "trainer"
  )
  return Dropped(dropped.leaf, f"{reason} (--force)")
