"""Carries out the plan of one step."""

import dataclasses
import os
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relayout import _native
from relayout.convert import link, provenance, rekey, side_files, staging
from relayout.convert.plan import StepPlan
from relayout.errors import CorruptCheckpointError, LayoutError
from relayout.layouts import maxtext

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
    num_bytes_written: New bytes: nodes, manifest and side files.
    num_side_bytes: Those of `num_bytes_written` that are side files.
    methods: Number of data files by how they came into the target.
    reasons: Why files are not hard links; empty if all are.
  """

  num_keys: int
  num_bytes_linked: int
  num_bytes_copied: int
  num_bytes_written: int
  num_side_bytes: int
  methods: tuple[tuple[str, int], ...]
  reasons: tuple[str, ...]


def prepare(plan: StepPlan) -> _native.RekeyPlan:
  """Returns the plan of the target's keys; reads and writes no file.

  Raises:
    CorruptCheckpointError: If stored keys do not fit their arrays.
    LayoutError: If two target keys would be the same.
  """
  request = rekey.make_request(plan)
  try:
    return _native.plan_rekey(
      request.listings,
      moves=request.moves,
      literals=request.literals,
      drops=request.drops,
    )
  except CorruptCheckpointError as error:
    raise CorruptCheckpointError(f"{plan.source}: {error}") from error
  except ValueError as error:
    raise LayoutError(f"{plan.source}: {error}") from error


def apply_step(
  plan: StepPlan,
  keys: _native.RekeyPlan,
  target: Path,
  record: dict[str, Any],
) -> Applied:
  """Writes the step directory `target`, whole or not at all.

  Args:
    plan: What the step becomes.
    keys: What `prepare` made of it.
    target: Step directory; must not exist.
    record: Provenance.

  Raises:
    OSError: If the target can't be written.
    TargetExistsError: If it exists.
  """
  with staging.staged(target) as temporary:
    return _write(plan, keys, temporary, record)


def _write(
  plan: StepPlan, keys: _native.RekeyPlan, step: Path, record: dict[str, Any]
) -> Applied:
  item = step / maxtext.ITEM
  (item / _DATA).mkdir(parents=True)
  names = _target_names(keys.files)
  transfers = _transfer_all(plan, keys, names, item)
  native = _write_database(plan, keys, names, item)
  side_bytes = _write_side_files(plan, step, record)
  linked = [t for t in transfers if t.method is not link.Method.COPY]
  copied = [t for t in transfers if t.method is link.Method.COPY]
  return Applied(
    num_keys=native.num_keys,
    num_bytes_linked=sum(t.num_bytes for t in linked),
    num_bytes_copied=sum(t.num_bytes for t in copied),
    num_bytes_written=native.num_bytes_written + side_bytes,
    num_side_bytes=side_bytes,
    methods=tuple(Counter(t.method.value for t in transfers).items()),
    reasons=tuple(sorted({t.reason for t in transfers} - {""})),
  )


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


def _transfer_all(
  plan: StepPlan,
  keys: _native.RekeyPlan,
  names: Sequence[str],
  item: Path,
) -> list[link.Transfer]:
  listings = [listing for source in plan.items for listing in source.listings]
  transfers = []
  for file, name in zip(keys.files, names, strict=True):
    source = Path(listings[file.listing].directory, file.path)
    moved = _transfer(source, item / name)
    if moved.num_bytes != file.num_bytes:
      raise CorruptCheckpointError(
        f"{source}: had {file.num_bytes} bytes when it was listed and has "
        f"{moved.num_bytes} now; is the checkpoint still being written?"
      )
    transfers.append(moved)
  return transfers


def _transfer(source: Path, target: Path) -> link.Transfer:
  try:
    return link.transfer(source, target)
  except FileNotFoundError as error:
    if source.exists():
      raise  # it is the target's directory that is gone
    raise CorruptCheckpointError(
      f"{source}: data file vanished during the conversion"
    ) from error


def _write_database(
  plan: StepPlan,
  keys: _native.RekeyPlan,
  names: Sequence[str],
  item: Path,
) -> _native.ApplyReport:
  listings = [listing for source in plan.items for listing in source.listings]
  inline_limit = max(x.max_inline_value_bytes for x in listings)
  node_limit = min(x.max_decoded_node_bytes for x in listings)
  return _native.apply_rekey(
    keys,
    directory=os.fspath(item),
    file_paths=list(names),
    uuid=secrets.token_bytes(16),
    max_inline_value_bytes=inline_limit,
    max_decoded_node_bytes=max(node_limit, _MIN_NODE_BYTES + inline_limit),
    zstd_level=listings[0].zstd_level,
    data_file=f"{_DATA}/{secrets.token_hex(16)}",
    commit_time_ns=time.time_ns(),
    sync=False,  # as all that is staged is synced at the end
  )


def _write_side_files(
  plan: StepPlan, step: Path, record: dict[str, Any]
) -> int:
  """Writes everything but the database; returns the number of bytes."""
  num_bytes = 0
  for path, data in side_files.item_files(plan).items():
    file = step / maxtext.ITEM / path
    file.parent.mkdir(exist_ok=True)
    num_bytes += staging.write_file(file, data)
  for name, data in side_files.step_files(plan).items():
    num_bytes += staging.write_file(step / name, data)
  num_bytes += staging.write_file(
    step / provenance.FILE, provenance.encode(record)
  )
  return num_bytes
