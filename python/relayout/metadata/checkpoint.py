"""Finds out what a path is: a run's checkpoints, one step, or one item."""

import dataclasses
import os
import pathlib
import re
from typing import Literal

from relayout import errors
from relayout.metadata import step_metadata
from relayout.metadata.directory import Directory, is_temporary

COMMIT_MARKER = "commit_success.txt"
LEVELS = ("actor", "critic")
"""Directories that RL trainers put between a run and its steps."""

_STEP_NAME = re.compile(r"\d{1,18}")
_NUMBERED_NAME = re.compile(r"(?:.*[_-])?(\d{1,18})")
_CHECKPOINTS = "checkpoints"
_MAX_SHOWN = 8


@dataclasses.dataclass(frozen=True, slots=True)
class StepDirectory:
  """What one save wrote.

  Attributes:
    path: The directory.
    number: The number that its name says, or None.
    items: Names of the items that hold arrays, sorted.
    other_items: Names of its other directories, such as a data iterator's
      `iter`; sorted.
    is_complete: Whether nothing tells that the save was cut short.
    ignored: Temporary directories within.
    notes: What is unusual about it, a missing commit marker for example.
  """

  path: pathlib.Path
  number: int | None
  items: tuple[str, ...]
  other_items: tuple[str, ...] = ()
  is_complete: bool = True
  ignored: tuple[str, ...] = ()
  notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
  """What a path leads to.

  Attributes:
    kind: `run` for a directory of steps, `step` for one step, `item` for one
      item.
    root: The directory of that kind, which may lie below the path given.
    level: Name of the level between a run and its steps, such as `actor`, or
      the empty string.
    steps: By number; for an item, the step that it stands in, if it does.
    item: The item's directory, or None.
    ignored: Names of directories passed over: saves cut short, and levels that
      were not chosen.
    notes: What is unusual.
  """

  kind: Literal["run", "step", "item"]
  root: pathlib.Path
  level: str
  steps: tuple[StepDirectory, ...]
  item: pathlib.Path | None = None
  ignored: tuple[str, ...] = ()
  notes: tuple[str, ...] = ()


def find_checkpoint(path: str | os.PathLike[str]) -> Found:
  """Returns what `path` leads to; looks at names only.

  Args:
    path: A run's directory or its `checkpoints` (or `checkpoints/actor`), a
      step such as `checkpoints/1000`, or an item such as
      `checkpoints/1000/items` or `.../model_params`.

  Raises:
    NotACheckpointError: If it leads to nothing of these; says what is there.
  """
  root = pathlib.Path(path)
  _check_directory(root)
  top = Directory.read(root)
  if top.is_item:
    return _item_found(top)
  step = _as_step(top)
  if step is not None:
    return Found("step", root, _level_of(root), (step,), ignored=step.ignored)
  found = _run_found(top)
  if found is None:
    raise errors.NotACheckpointError(_describe_failure(top))
  return found


def check_local(path: pathlib.Path) -> None:
  """Refuses the address of a bucket, which would be taken for a directory.

  Raises:
    NotACheckpointError: If `path` begins with a scheme, such as `gs://`.
  """
  text = str(path)
  if re.match(r"[a-z][a-z0-9+]+:/", text):
    raise errors.NotACheckpointError(
      f"{text}: relayout works on directories of this machine; mount the"
      " bucket, or copy the checkpoint, and give that path"
    )


def _check_directory(path: pathlib.Path) -> None:
  check_local(path)
  if is_temporary(path.name):
    raise errors.NotACheckpointError(
      f"{path}: a temporary directory, left by a save that was cut short or is"
      " still running; give a finished checkpoint"
    )
  try:
    path.stat()
  except FileNotFoundError:
    raise errors.NotACheckpointError(_describe_absence(path)) from None
  except OSError as error:
    raise errors.NotACheckpointError(
      f"{path}: can't be read ({error.strerror})"
    ) from error
  if not path.is_dir():
    raise errors.NotACheckpointError(
      f"{path}: a file; a checkpoint is a directory: give the one that holds it"
    )


def _describe_absence(path: pathlib.Path) -> str:
  """Says where the path ends, and what is there instead."""
  parent = path.parent
  while not parent.is_dir() and parent != parent.parent:
    parent = parent.parent
  try:
    names = sorted(os.listdir(parent))
  except OSError:
    names = []
  unfinished = [
    name
    for name in names
    if is_temporary(name) and path.name in name and parent == path.parent
  ]
  if unfinished:
    return (
      f"{path}: does not exist; {unfinished[0]} beside it is a save that was"
      " cut short"
    )
  return f"{path}: does not exist; {parent} holds {_some(names)}"


def _item_found(top: Directory) -> Found:
  """An item, and the step around it if there is one."""
  notes = []
  if top.has(step_metadata.FILE_NAME):
    notes.append(
      f"{top.path / step_metadata.FILE_NAME}: belongs at the step, not in an"
      " item; Orbax v1 refuses a step with such an item"
    )
  # The parent of a relative path such as `.` shows only when resolved.
  parent_path = pathlib.Path(os.path.abspath(top.path)).parent
  parent = Directory.read_or_none(parent_path)
  step = None
  if parent is not None and (
    _STEP_NAME.fullmatch(parent_path.name)
    or parent.has(step_metadata.FILE_NAME)
  ):
    step = _as_step(parent)
  return Found(
    kind="item",
    root=top.path,
    level="" if step is None else _level_of(parent_path),
    steps=() if step is None else (step,),
    item=top.path,
    notes=tuple(notes),
  )


def _as_step(directory: Directory) -> StepDirectory | None:
  """Returns the step that `directory` is, or None if it holds no item."""
  items, other_items, notes = [], [], []
  for child in directory.children():
    if not child.is_item:
      other_items.append(child.path.name)
      continue
    items.append(child.path.name)
    if child.has(step_metadata.FILE_NAME):
      notes.append(
        f"{child.path / step_metadata.FILE_NAME}: belongs at the step, not in"
        " an item; Orbax v1 refuses such a step"
      )
  if not items:
    return None
  for error in directory.unlisted():
    raise error  # it may be an item, and would be left out without a word
  markers = (COMMIT_MARKER, step_metadata.FILE_NAME)
  absent = [name for name in markers if not directory.has(name)]
  if absent:
    notes.append(f"{directory.path}: without {' and '.join(absent)}")
  temporary = directory.temporary
  if temporary:
    notes.append(
      f"{directory.path}: holds {', '.join(temporary)}: the save was cut short"
      " or is still running"
    )
  match = _NUMBERED_NAME.fullmatch(directory.name)
  return StepDirectory(
    path=directory.path,
    number=int(match[1]) if match else None,
    items=tuple(items),
    other_items=tuple(other_items),
    is_complete=len(absent) < len(markers) and not temporary,
    ignored=temporary,
    notes=tuple(notes),
  )


def _run_found(top: Directory) -> Found | None:
  """Returns the run at `top`, in its `checkpoints`, or below one level."""
  ignored: list[str] = []
  candidates = [top]
  checkpoints = top.child(_CHECKPOINTS)
  if checkpoints is not None:
    candidates.append(checkpoints)
  for candidate in candidates:
    found = _steps_found(candidate, _level_of(candidate.path), ignored)
    if found is not None:
      return found
  for candidate in candidates:
    found = _level_found(candidate, ignored)
    if found is not None:
      return found
  return None


def _level_found(directory: Directory, ignored: list[str]) -> Found | None:
  """Returns the run one level below `directory`, or None.

  Raises:
    NotACheckpointError: If there are several and none is the policy's.
  """
  runs = []
  for child in directory.children():
    if not _STEP_NAME.fullmatch(child.name) and child.name != _CHECKPOINTS:
      found = _steps_found(child, child.name, list(ignored))
      if found is not None:
        runs.append(found)
  known = [found for level in LEVELS for found in runs if found.level == level]
  if not known and len(runs) > 1:
    raise errors.NotACheckpointError(
      f"{directory.path}: holds several runs; give one of"
      f" {_some([found.level for found in runs])}"
    )
  if not runs:
    return None
  chosen = (known or runs)[0]
  others = [found.level for found in runs if found is not chosen]
  return dataclasses.replace(chosen, ignored=(*others, *chosen.ignored))


def _steps_found(
  directory: Directory, level: str, ignored: list[str]
) -> Found | None:
  """Returns the run whose steps `directory` holds, or None without any.

  Args:
    directory: Where the steps would be.
    level: As in `Found`.
    ignored: What was passed over so far; grows.
  """
  steps, notes = [], []
  for name in filter(_STEP_NAME.fullmatch, sorted(directory.directories)):
    if not os.path.lexists(directory.path / name):
      continue
    Directory.read(directory.path / name)  # a step is not passed over
  for child in directory.children():
    if not _STEP_NAME.fullmatch(child.name):
      continue
    step = _as_step(child)
    if step is not None:
      steps.append(step)
    else:
      ignored.append(child.name)
      notes.append(f"{child.path}: a numbered directory without items; ignored")
  ignored.extend(directory.temporary)
  if not steps:
    return None
  steps.sort(key=lambda step: step.number or 0)
  return Found(
    kind="run",
    root=directory.path,
    level=level,
    steps=tuple(steps),
    ignored=tuple(ignored),
    notes=tuple(notes),
  )


def _level_of(path: pathlib.Path) -> str:
  """Returns the level that a run or step stands below, by its own path."""
  parts = pathlib.Path(os.path.abspath(path)).parts[-2:]
  return next((part for part in parts if part in LEVELS), "")


def _describe_failure(top: Directory) -> str:
  """Says what was expected and what was found."""
  found = _some(sorted(top.names)) if top.names else "nothing"
  message = (
    f"{top.path}: not a checkpoint. Expected a run's checkpoints (directories"
    " named by step number), a step (a directory with items such as `items`"
    " of MaxText, or `model_params` and `optimizer_state` of Tunix), or an"
    f" item (with manifest.ocdbt or arrays in zarr form); found {found}"
  )
  if top.temporary:
    message += (
      f"; {_some(list(top.temporary))} was left by a save that was cut short"
    )
  if top.has("checkpoint"):
    message += (
      "; a file named checkpoint alone is Flax's old msgpack form, which"
      " relayout doesn't read"
    )
  if top.has("model.safetensors.index.json") or top.has("config.json"):
    message += "; this looks like a Hugging Face model, not an Orbax checkpoint"
  return message


def _some(names: list[str]) -> str:
  """Returns the first of `names`, and whether there are more."""
  if not names:
    return "nothing"
  more = ", ..." if len(names) > _MAX_SHOWN else ""
  return ", ".join(names[:_MAX_SHOWN]) + more
