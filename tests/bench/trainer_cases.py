"""The cases in which a live training state is saved or restored."""

import functools
from collections.abc import Callable, Iterator

from tests.bench import sides, trainer_states
from tests.bench.comparison import Case, Source
from tests.bench.sides import Side
from tests.bench.trainer_states import Size


def make(size: Size) -> Iterator[Case]:
  """Yields the cases."""
  source = Source(
    functools.partial(trainer_states.write_runs, size=size),
    num_scratch_bytes=4 * size.num_bytes,
  )
  yield Case(
    source,
    _side("relayout", trainer_states.save_by_relayout, size),
    {
      "trainer_save": _side("Orbax", trainer_states.save_by_orbax, size),
      "trainer_save_tunix": _side(
        "Tunix's manager", trainer_states.save_by_tunix, size
      ),
    },
  )
  yield Case(
    source,
    _side("relayout", trainer_states.restore_stacked, size),
    {
      "trainer_restore": _side(
        "Orbax, natively", trainer_states.restore_by_orbax, size
      )
    },
  )


def _side(name: str, function: Callable[..., float], size: Size) -> Side:
  return Side(name, sides.warm(functools.partial(function, size=size)))
