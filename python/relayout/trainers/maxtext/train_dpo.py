"""MaxText's preference optimization, which keeps MaxText's layout."""

from absl import app

from relayout.trainers.maxtext import command

if __name__ == "__main__":
  app.run(command.main("train_dpo"))
