"""Runs the notebooks of this workspace and stores what they print."""

import os
import pathlib

import nbformat
import running


def main() -> None:
  """Updates each notebook that runs through."""
  notebooks = pathlib.Path(
    os.environ["BUILD_WORKSPACE_DIRECTORY"], "docs/notebooks"
  )
  for path in sorted(notebooks.glob("*.ipynb")):
    notebook = running.run(path)
    # What the kernel says of the interpreter differs from machine to machine.
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
  main()
