"""A run that made no update is no success."""

import types

import pytest

from relayout.errors import OptionError, RelayoutError
from relayout.trainers.maxtext.progress import Progress


def _trainer(done, budget, *, external=False):
  return types.SimpleNamespace(
    train_steps=done,
    is_managed_externally=external,
    config=types.SimpleNamespace(max_steps=budget),
  )


def _train(trainer, batches, eval_ds=None):
  budget = trainer.config.max_steps
  for _ in batches:
    if trainer.train_steps >= budget and not trainer.is_managed_externally:
      break
    trainer.train_steps += 1


def test_counts_updates():
  progress = Progress()
  progress.watch_training(_train)(_trainer(1, 3), range(9))
  assert progress.updates == 2
  progress.check()


@pytest.mark.parametrize("done", [3, 5])
def test_a_budget_that_is_used_up(done):
  progress = Progress()
  with pytest.raises(OptionError, match=f"nothing to do, for {done} updates"):
    progress.watch_training(_train)(_trainer(done, 3), range(9))


def test_no_data_says_why():
  progress = Progress()

  def load():
    raise ValueError("the disk is gone")

  with pytest.raises(ValueError, match="disk"):
    progress.watch_loading(load)()
  with pytest.raises(RelayoutError, match=r"not one of 3.*the disk is gone"):
    progress.watch_training(_train)(_trainer(0, 3), [])


def test_data_that_ends_early_is_no_error():
  progress = Progress()
  progress.watch_training(_train)(_trainer(0, 3), range(2))
  assert progress.updates == 2


def test_a_learner_has_its_own_budget():
  progress = Progress()
  train = progress.watch_training(_train)
  trainer = _trainer(3, 3, external=True)
  train(trainer, range(2))
  assert trainer.train_steps == 5


def test_a_trainer_without_a_budget_is_held_to_it():
  progress = Progress(ends_by_itself=False)
  trainer = _trainer(1, 3, external=True)
  batches = iter(range(9))
  progress.watch_training(_train)(trainer, batches)
  assert trainer.train_steps == 3
  assert next(batches) == 2


def test_no_update_at_all():
  with pytest.raises(RelayoutError, match="without a single update"):
    Progress().check()
