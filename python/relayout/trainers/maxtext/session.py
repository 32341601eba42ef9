"""MaxText and Tunix with our checkpoint manager in place of theirs."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from relayout.trainers.maxtext import hook_points
from relayout.trainers.maxtext.manager import ProgramCheckpointManager
from relayout.trainers.maxtext.progress import Progress


class Session:
  """What is known of a program that runs.

  Attributes:
    config: MaxText's configuration; None until the program has read it.
  """

  def __init__(self, config: Any = None) -> None:
    self.config = config

  def make_manager(
    self, root_directory: str | None = None, options: Any = None
  ) -> ProgramCheckpointManager:
    """Makes a manager, as Tunix's trainers make theirs."""
    return ProgramCheckpointManager(root_directory, options, self.config)

  def make_distillation_manager(
    self,
    raw_iterator: Any = None,
    root_directory: str | None = None,
    student_config: Any = None,
    options: Any = None,
  ) -> ProgramCheckpointManager:
    """Makes a manager, as MaxText's distillation makes its own."""
    del raw_iterator  # Its state is not kept.
    return ProgramCheckpointManager(root_directory, options, student_config)


@contextlib.contextmanager
def our_manager(
  config: Any = None, *, distills: bool = False
) -> Iterator[Session]:
  """Lets trainers that are built meanwhile have our manager.

  Args:
    config: MaxText's configuration, if it is known already.
    distills: Whether MaxText's distillation is one of them.

  Yields:
    The session, whose `config` may be set until a trainer is built.

  Raises:
    UnsupportedError: If MaxText or Tunix lacks a place to put it.
  """
  from tunix.sft import checkpoint_manager

  session = Session(config)
  with contextlib.ExitStack() as stack:
    if distills:
      # It derives a class of its own from Tunix's, so it is imported first.
      from maxtext.trainers.post_train.distillation import distillation_utils

      stack.enter_context(
        hook_points.replaced(
          distillation_utils,
          "MaxTextCheckpointManager",
          lambda _: session.make_distillation_manager,
        )
      )
    stack.enter_context(
      hook_points.replaced(
        checkpoint_manager, "CheckpointManager", lambda _: session.make_manager
      )
    )
    yield session


@contextlib.contextmanager
def watched(progress: Progress) -> Iterator[None]:
  """Lets `progress` watch the trainers that train meanwhile.

  Raises:
    UnsupportedError: If MaxText or Tunix lacks a place to do it.
  """
  from maxtext.common.data_loader import DataLoader
  from tunix.sft.peft_trainer import PeftTrainer

  with (
    hook_points.replaced(PeftTrainer, "train", progress.watch_training),
    hook_points.replaced(
      DataLoader, "load_next_batch_pre_sharding", progress.watch_loading
    ),
  ):
    yield


@contextlib.contextmanager
def configured(read: Callable[[Any], None], *names: str) -> Iterator[None]:
  """Calls `read` with each configuration that a program reads meanwhile.

  Args:
    read: Looks at it, and may change it.
    *names: Of MaxText's functions that return one.

  Raises:
    UnsupportedError: If MaxText lacks one of them.
  """
  from maxtext.configs import pyconfig, types

  def watch(initialize: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(initialize)
    def initializing(*args: Any, **kwargs: Any) -> Any:
      config = initialize(*args, **kwargs)
      read(config)
      return config

    return initializing

  with contextlib.ExitStack() as stack:
    for cls in (types.MaxTextConfig, types.RLConfig):
      stack.enter_context(hook_points.hashable(cls))
    for name in names:
      stack.enter_context(hook_points.replaced(pyconfig, name, watch))
    yield
