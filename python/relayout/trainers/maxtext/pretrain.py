"""MaxText's pre-training, which loads from any layout."""

from absl import app

from relayout.trainers.maxtext import command

if __name__ == "__main__":
  app.run(command.main("pretrain"))
