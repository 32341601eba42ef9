"""Sees to it that a run that ends well did train.

The released programs end with success when they load no data, and when the
budget is used up before the first step.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from absl import logging

from relayout.errors import OptionError, RelayoutError


class Progress:
  """Watches the trainers of one program.

  Attributes:
    updates: Updates that were made.
    failure: Of the last batch that could not be loaded, or None.
  """

  def __init__(self, *, ends_by_itself: bool = True) -> None:
    """Begins to watch.

    Args:
      ends_by_itself: False for the program whose trainer leaves its budget to
        its caller, which has none: it is then held to the configured steps.
    """
    self.updates = 0
    self.failure: Exception | None = None
    self._ends_by_itself = ends_by_itself

  def watch_loading(self, load: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps what loads a batch: remembers why there is none."""

    @functools.wraps(load)
    def loading(*args: Any, **kwargs: Any) -> Any:
      try:
        batch = load(*args, **kwargs)
      except Exception as error:  # Remembered, and raised again.
        self.failure = error
        raise
      self.failure = None
      return batch

    return loading

  def watch_training(self, train: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a trainer's method `train`.

    Its budget is checked before, and what it did after.
    """

    @functools.wraps(train)
    def training(
      trainer: Any, train_ds: Iterable[Any], *args: Any, **kwargs: Any
    ) -> Any:
      budget = self._budget(trainer)
      start = trainer.train_steps
      if budget is not None:
        _check_budget(start, budget)
        if trainer.is_managed_externally:
          train_ds = _within(train_ds, trainer, budget)
      result = train(trainer, train_ds, *args, **kwargs)
      self.updates += trainer.train_steps - start
      if budget is not None:
        self._check_end(start, trainer.train_steps, budget)
      return result

    return training

  def _budget(self, trainer: Any) -> int | None:
    """Returns the budget of updates that a trainer has to keep, or None."""
    if trainer.is_managed_externally and self._ends_by_itself:
      return None
    budget: int | None = trainer.config.max_steps
    return budget

  def check(self) -> None:
    """Checks that the program made updates at all.

    Raises:
      RelayoutError: If it made none.
    """
    if self.updates == 0:
      raise RelayoutError(
        "the program ended without a single update. If it resumed a run, its "
        "budget is used up: raise it, or give another run_name"
      ) from self.failure

  def _check_end(self, start: int, end: int, budget: int) -> None:
    if end >= budget:
      return
    if end == start:
      raise RelayoutError(
        f"not one of {budget - start} updates was made: no data came. "
        f"{self._reason()}"
      ) from self.failure
    logging.warning(
      "The run ended after %d of %d updates. %s", end, budget, self._reason()
    )

  def _reason(self) -> str:
    if self.failure is None:
      return "The data ended"
    return f"Loading the next batch said: {self.failure}"


def _check_budget(done: int, budget: int) -> None:
  if done >= budget:
    raise OptionError(
      f"steps={budget}: nothing to do, for {done} updates are done already. "
      f"Steps are counted from the start of the run, or of the one it goes on "
      f"from: give steps above {done}, or another run_name"
    )


def _within(batches: Iterable[Any], trainer: Any, budget: int) -> Iterator[Any]:
  """Yields batches until the budget is used up."""
  iterator = iter(batches)
  while trainer.train_steps < budget:
    try:
      yield next(iterator)
    except StopIteration:
      return
