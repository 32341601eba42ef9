"""Decides which steps of two runs belong together."""

import dataclasses
from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Numbered:
  """What tells one step of a side from another.

  Attributes:
    number: Number of the directory, or None.
    updates: Optimizer updates by its own counter, or None.
    renumbered: Number that the directory would have on the other side, or None.
  """

  number: int | None
  updates: int | None
  renumbered: int | None = None


type Pairs = list[tuple[int, int]]
"""Positions of steps that belong together: (source, target)."""


def pair_steps(
  sources: Sequence[Numbered], targets: Sequence[Numbered]
) -> Pairs:
  """Returns the pairs, by position, in the order of `sources`.

  One step on each side is a pair whatever they say.  Else the updates decide;
  where a side does not count them, or nothing counts the same, the number of
  the directory does: as the other side numbers its steps, or the same,
  whichever fits more steps.
  """
  if len(sources) == len(targets) == 1:
    return [(0, 0)]
  pairs = _match(sources, targets, [], _same_updates)
  for rule in _best_rule_first(sources, targets, pairs):
    pairs = _match(sources, targets, pairs, rule)
  return sorted(pairs)


type _Rule = Callable[[Numbered, Numbered], bool]


def _same_updates(source: Numbered, target: Numbered) -> bool:
  return source.updates is not None and source.updates == target.updates


def _renumbered(source: Numbered, target: Numbered) -> bool:
  return source.renumbered is not None and target.number == source.renumbered


def _same_number(source: Numbered, target: Numbered) -> bool:
  return source.number is not None and source.number == target.number


def _best_rule_first(
  sources: Sequence[Numbered], targets: Sequence[Numbered], pairs: Pairs
) -> list[_Rule]:
  rules: list[_Rule] = [_renumbered, _same_number]
  return sorted(
    rules, key=lambda rule: -len(_match(sources, targets, pairs, rule))
  )


def _match(
  sources: Sequence[Numbered],
  targets: Sequence[Numbered],
  pairs: Pairs,
  rule: _Rule,
) -> Pairs:
  """Returns `pairs` and those of the other steps that `rule` allows."""
  result = list(pairs)
  free = set(range(len(targets))) - {target for _, target in pairs}
  taken = {source for source, _ in pairs}
  for i, source in enumerate(sources):
    fitting = [j for j in sorted(free) if rule(source, targets[j])]
    if i not in taken and fitting:
      result.append((i, fitting[0]))
      free.discard(fitting[0])
  return result
