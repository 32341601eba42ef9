"""Carries out the plan of one step."""

import dataclasses
import hashlib
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from relayout import _native
from relayout.convert import (
  carry,
  link,
  provenance,
  rekey,
  rewrite,
  rewriting,
  side_files,
  staging,
)
from relayout.convert.plan import ItemPlan, StepPlan
from relayout.convert.rewriting import Task
from relayout.errors import CorruptCheckpointError, LayoutError

type Progress = Callable[[str], None]

_DATA = "d"

# Room for the longest key, whatever limit the source has.
_MIN_NODE_BYTES = 1 << 17


@dataclasses.dataclass(frozen=True, slots=True)
class Applied:
  """What was done to write one step.

  Attributes:
    num_keys: Keys in the new database.
    num_bytes_linked: Bytes of data files that two names now share.
    num_bytes_copied: Bytes of data files that had to be copied.
    num_bytes_written: New bytes: nodes, manifest, side files, and rewritten
      chunks.
    num_bytes_rewritten: Those of `num_bytes_written` that are chunks.
    num_side_bytes: Those of `num_bytes_written` that are side files.
    methods: Number of data files by how they came into the target.
    reasons: Why files are not hard links; empty if all are.
  """

  num_keys: int
  num_bytes_linked: int
  num_bytes_copied: int
  num_bytes_written: int
  num_bytes_rewritten: int
  num_side_bytes: int
  methods: tuple[tuple[str, int], ...]
  reasons: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
  """The keys of an item.

  Attributes:
    plan: The keys and the data references.
    directories: Of the databases that the plan's data files are in.
  """

  plan: _native.RekeyPlan
  directories: tuple[Path, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
  """A plan, checked down to its keys.

  Attributes:
    plan: What the step becomes.
    keys: For each item, the target's keys; None where chunks are rewritten,
      which are placed first.
    parts: For each item, what is rewritten.
    expected_memory: Bytes of buffers that rewriting will take.
  """

  plan: StepPlan
  keys: tuple[Keys | None, ...]
  parts: tuple[tuple[tuple[Task, ...], ...], ...]
  expected_memory: int


def prepare(plan: StepPlan, memory_limit: int) -> Prepared:
  """Checks a plan down to its keys; writes no file.

  Raises:
    CorruptCheckpointError: If stored keys do not fit their arrays.
    LayoutError: If two target keys would be the same.
    OptionError: If the memory limit is too low.
  """
  keys, all_parts = [], []
  memory = 0
  for item in plan.targets:
    parts = rewriting.parts(item)
    for part in parts:
      native = rewrite.plan_part(
        part, memory_limit, store_fill=plan.stores_fill_values
      )
      memory = max(memory, native.expected_memory_bytes)
    planned = _plan_keys(plan, item, {})
    keys.append(None if parts else planned)
    all_parts.append(parts)
  return Prepared(plan, tuple(keys), tuple(all_parts), memory)


def _plan_keys(
  plan: StepPlan, item: ItemPlan, rewritten: dict[str, _native.Listing]
) -> Keys:
  request = rekey.make_request(item, rewritten)
  directories = tuple(Path(x.directory) for x in request.listings)
  try:
    planned = _native.plan_rekey(
      request.listings,
      moves=request.moves,
      literals=request.literals,
      drops=request.drops,
    )
  except CorruptCheckpointError as error:
    raise CorruptCheckpointError(f"{plan.source}: {error}") from error
  except ValueError as error:
    raise LayoutError(f"{plan.source}: {error}") from error
  return Keys(planned, directories)


def apply_step(
  prepared: Prepared,
  target: Path,
  record: dict[str, Any],
  *,
  memory_limit: int,
  progress: Progress = lambda message: None,
) -> Applied:
  """Writes the step directory `target`, whole or not at all.

  Args:
    prepared: What the step becomes.
    target: Step directory; must not exist.
    record: Provenance.
    memory_limit: Most bytes for buffers where chunks are rewritten.
    progress: Is told what happens, for long work.

  Raises:
    OSError: If the target can't be written.
    TargetExistsError: If it exists.
  """
  with staging.staged(target, _identity(record, memory_limit)) as temporary:
    writer = _Writer(prepared.plan, temporary, memory_limit, progress)
    for item, keys, parts in zip(
      prepared.plan.targets, prepared.keys, prepared.parts, strict=True
    ):
      writer.write_item(item, keys, parts)
    writer.write_rest(record)
  return writer.applied()


def _identity(record: dict[str, Any], memory_limit: int) -> str:
  """Returns what tells this work from other work for the same directory."""
  text = json.dumps([record, memory_limit], sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()


class _Writer:
  """Writes the items of a step, and keeps account of it."""

  def __init__(
    self, plan: StepPlan, step: Path, memory_limit: int, progress: Progress
  ) -> None:
    self._plan = plan
    self._step = step
    self._memory_limit = memory_limit
    self._progress = progress
    self._transfers: list[link.Transfer] = []
    self._num_keys = 0
    self._num_native_bytes = 0
    self._num_rewritten_bytes = 0
    self._num_side_bytes = 0

  def write_item(
    self,
    item: ItemPlan,
    keys: Keys | None,
    parts: Sequence[Sequence[Task]],
  ) -> None:
    """Writes one item; chunks that are rewritten first."""
    if keys is None:
      keys = _plan_keys(self._plan, item, self._rewrite(item, parts))
    directory = self._step / item.name
    (directory / _DATA).mkdir(parents=True)
    names = _target_names(keys.plan.files)
    self._transfer_all(keys, names, directory)
    report = self._write_database(keys.plan, names, directory)
    self._num_keys += report.num_keys
    self._num_native_bytes += report.num_bytes_written
    for path, data in side_files.item_files(self._plan, item).items():
      file = directory / path
      file.parent.mkdir(exist_ok=True)
      self._num_side_bytes += staging.write_file(file, data)

  def write_rest(self, record: dict[str, Any]) -> None:
    """Writes what belongs to the step as a whole."""
    for source in self._plan.carried:
      self._progress(f"carrying {source}")
      self._transfers += carry.carry(source, self._step / source.name)
    files = dict(side_files.step_files(self._plan))
    files[provenance.FILE] = provenance.encode(record)
    for name, data in files.items():
      self._num_side_bytes += staging.write_file(self._step / name, data)

  def applied(self) -> Applied:
    """Returns what was done."""
    transfers = self._transfers
    linked = [t for t in transfers if t.method is not link.Method.COPY]
    copied = [t for t in transfers if t.method is link.Method.COPY]
    written = (
      self._num_native_bytes + self._num_side_bytes + self._num_rewritten_bytes
    )
    return Applied(
      num_keys=self._num_keys,
      num_bytes_linked=sum(t.num_bytes for t in linked),
      num_bytes_copied=sum(t.num_bytes for t in copied),
      num_bytes_written=written,
      num_bytes_rewritten=self._num_rewritten_bytes,
      num_side_bytes=self._num_side_bytes,
      methods=tuple(Counter(t.method.value for t in transfers).items()),
      reasons=tuple(sorted({t.reason for t in transfers} - {""})),
    )

  def _rewrite(
    self, item: ItemPlan, parts: Sequence[Sequence[Task]]
  ) -> dict[str, _native.Listing]:
    """Rewrites what is needed; returns the database of each leaf by name.

    While a part becomes durable, the next one is written already.
    """
    databases: list[Future[_native.Listing]] = []
    with ThreadPoolExecutor(1) as executor:
      for number, part in enumerate(parts):
        directory = self._step / staging.PARTS / item.name / f"{number:06}"
        found = rewrite.find_part(directory)
        if found is not None:
          databases.append(_completed(found))
          continue
        what = f"{item.name}: rewriting part {number + 1} of {len(parts)}"
        written = self._write_chunks(part, directory, what)
        databases.append(
          executor.submit(rewrite.complete_part, part, written, directory)
        )
    result = {}
    for part, database in zip(parts, databases, strict=True):
      listing = database.result()
      self._num_rewritten_bytes += sum(f.num_bytes for f in listing.files)
      for leaf in (leaf for task in part for leaf in task.targets):
        result[leaf.name] = listing
    return result

  def _write_chunks(
    self, part: Sequence[Task], directory: Path, what: str
  ) -> _native.Listing:
    self._progress(what)
    return rewrite.write_chunks(
      part,
      directory,
      self._memory_limit,
      store_fill=self._plan.stores_fill_values,
      progress=self._share(what),
    )

  def _share(self, what: str) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
      self._progress(f"{what}, {100 * done // max(total, 1)} %")

    return show

  def _transfer_all(
    self, keys: Keys, names: Sequence[str], directory: Path
  ) -> None:
    parts = self._step / staging.PARTS
    for file, name in zip(keys.plan.files, names, strict=True):
      source = keys.directories[file.listing] / file.path
      moved = _transfer(source, directory / name)
      if moved.num_bytes != file.num_bytes:
        raise CorruptCheckpointError(
          f"{source}: had {file.num_bytes} bytes when it was listed and has "
          f"{moved.num_bytes} now; is the checkpoint still being written?"
        )
      if parts not in source.parents:
        self._transfers.append(moved)

  def _write_database(
    self, keys: _native.RekeyPlan, names: Sequence[str], directory: Path
  ) -> _native.ApplyReport:
    listings = [x for item in self._plan.items for x in item.listings]
    inline_limit = max(x.max_inline_value_bytes for x in listings)
    node_limit = min(x.max_decoded_node_bytes for x in listings)
    with staging.in_place(directory):
      return _native.apply_rekey(
        keys,
        directory=os.fspath(directory),
        file_paths=list(names),
        uuid=secrets.token_bytes(16),
        max_inline_value_bytes=inline_limit,
        max_decoded_node_bytes=max(node_limit, _MIN_NODE_BYTES + inline_limit),
        zstd_level=listings[0].zstd_level,
        data_file=f"{_DATA}/{secrets.token_hex(16)}",
        commit_time_ns=time.time_ns(),
        sync=False,  # as all that is staged is synced at the end
      )


def _completed(listing: _native.Listing) -> Future[_native.Listing]:
  future: Future[_native.Listing] = Future()
  future.set_result(listing)
  return future


def _target_names(files: Sequence[_native.PlannedFile]) -> list[str]:
  """Returns where each data file goes; equal names are told apart."""
  taken: set[str] = set()
  names = []
  for number, file in enumerate(files):
    name = f"{_DATA}/{os.path.basename(file.path)}"
    while name in taken:
      name = f"{name}-{number}"
    taken.add(name)
    names.append(name)
  return names


def _transfer(source: Path, target: Path) -> link.Transfer:
  try:
    return link.transfer(source, target)
  except FileNotFoundError as error:
    if source.exists():
      raise  # it is the target's directory that is gone
    raise CorruptCheckpointError(
      f"{source}: data file vanished during the conversion"
    ) from error
