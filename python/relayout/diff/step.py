"""Compares two steps."""

import time
from collections.abc import Callable, Iterable, Iterator

from relayout.comparison.forms import Declared, Form, forms_of
from relayout.comparison.joints import Joint, Pair, join
from relayout.comparison.mismatch import Mismatch, merge, mismatch
from relayout.comparison.pieces import Piece, Unreadable, read_pieces
from relayout.comparison.side import Side
from relayout.diff.fingerprint import Fingerprint
from relayout.diff.report import LeafDiff, Status, StepDiff, in_order
from relayout.diff.structure import Structure, stored_of
from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import Role, StoredLeaf

type Progress = Callable[[str], None]
"""Is told in words what was just done, for long work."""


class _Leaf:
  """What is known so far of the values of one leaf."""

  def __init__(self, pair: Pair, *, with_hashes: bool) -> None:
    self.pair = pair
    self.mismatch: Mismatch | None = None
    self._hashes = [
      Fingerprint(part.shape) if with_hashes else None
      for part in (pair.a, pair.b)
    ]

  def add(self, piece: Piece) -> None:
    """Takes in corresponding values of both sides."""
    found = mismatch(piece.a, piece.b)
    self.mismatch = merge(self.mismatch, found and found.at(piece.start))
    for digest, values in zip(self._hashes, (piece.a, piece.b), strict=True):
      if digest is not None:
        digest.add(values, piece.start)

  def finish(self, *, is_dtype_free: bool) -> LeafDiff:
    """Returns how the leaf compares, all its values taken in."""
    a, b = (
      stored_of(part, digest.hex() if digest else "")
      for part, digest in zip(
        (self.pair.a, self.pair.b), self._hashes, strict=True
      )
    )
    status, detail = _metadata(self.pair, is_dtype_free=is_dtype_free)
    if status is Status.EQUAL and self.mismatch:
      status = Status.VALUE
    return LeafDiff(self.pair.key, status, a, b, detail, self.mismatch)


def diff_step(
  a: Side,
  b: Side,
  declared: Declared,
  *,
  values: bool,
  hashes: bool,
  memory_limit: int,
  progress: Progress,
) -> StepDiff:
  """Compares two steps.

  Raises:
    CorruptCheckpointError: If values can't be read.
    OptionError: If the grouping of layers matters and nothing tells it.
  """
  started = time.monotonic()
  forms = forms_of(a, b, declared)
  structure = Structure(a, b, forms)
  leaves = [*structure.settled]
  if values:
    joints = join(structure.pairs)
    leaves += _compare(
      joints, (a, b), structure, hashes, memory_limit, progress
    )
  else:
    joints = []
    leaves += map(_unread, structure.pairs)
  return StepDiff(
    a=str(a.step.path),
    b=str(b.step.path),
    facts=tuple(_facts(a, b, forms.a, forms.b)),
    leaves=in_order(leaves),
    notes=tuple(_notes(a, b, forms.note)),
    num_bytes=sum(joint.num_bytes for joint in joints),
    seconds=time.monotonic() - started,
  )


def _compare(
  joints: list[Joint],
  sides: tuple[Side, Side],
  structure: Structure,
  hashes: bool,
  memory_limit: int,
  progress: Progress,
) -> Iterator[LeafDiff]:
  """Yields how the values of leaves compare."""
  oracles = {path: x for side in sides for path, x in side.oracles.items()}
  total = sum(joint.num_bytes for joint in joints)
  done = 0
  found: dict[int, _Leaf] = {}
  for event in read_pieces(
    joints,
    lambda leaf: oracles[leaf.item.directory].open(leaf.leaf.name),
    memory_limit,
  ):
    if isinstance(event, Unreadable):
      raise _unreadable(event.stored, event.reason)
    if isinstance(event, Piece):
      leaf = found.get(id(event.pair))
      if leaf is None:
        leaf = found[id(event.pair)] = _Leaf(event.pair, with_hashes=hashes)
      leaf.add(event)
      continue
    for pair in event.joint.pairs:
      leaf = found.pop(id(pair), None) or _Leaf(pair, with_hashes=hashes)
      yield leaf.finish(is_dtype_free=structure.is_dtype_free(pair))
    done += event.joint.num_bytes
    progress(
      f"compared {100 * done // max(total, 1)} %, {event.joint.wide.leaf.name}"
    )


def _unreadable(stored: StoredLeaf, reason: str) -> CorruptCheckpointError:
  return CorruptCheckpointError(
    f"{stored.item.directory}: array {stored.leaf.name}: {reason}"
  )


def _metadata(pair: Pair, *, is_dtype_free: bool) -> tuple[Status, str]:
  """Returns how what is not a value compares."""
  a, b = pair.a.stored.leaf, pair.b.stored.leaf
  assert a.spec is not None
  assert b.spec is not None
  if a.spec.dtype != b.spec.dtype and not is_dtype_free:
    return Status.DTYPE, f"{a.spec.dtype} / {b.spec.dtype}"
  is_rng = pair.key.role == Role.RNG.value
  if is_rng and a.random_key_impl != b.random_key_impl:
    return (
      Status.METADATA,
      f"random_key_impl {a.random_key_impl} / {b.random_key_impl}",
    )
  return Status.EQUAL, ""


def _unread(pair: Pair) -> LeafDiff:
  status, detail = _metadata(pair, is_dtype_free=True)
  a, b = stored_of(pair.a), stored_of(pair.b)
  if status is Status.EQUAL and a.dtype != b.dtype:
    status, detail = Status.DTYPE, f"{a.dtype} / {b.dtype}"
  elif status is Status.EQUAL:
    status = Status.SKIPPED
  return LeafDiff(pair.key, status, a, b, detail)


def _facts(
  a: Side, b: Side, a_form: Form, b_form: Form
) -> Iterator[tuple[str, str, str]]:
  yield "layout", a.step.layout, b.step.layout
  yield "layers", str(a_form), str(b_form)
  yield "stored as", _store(a), _store(b)
  yield "optimizer", _optimizer(a), _optimizer(b)
  yield "updates", _updates(a), _updates(b)
  if a.state.adapter or b.state.adapter:
    yield "adapter level", a.state.adapter or "none", b.state.adapter or "none"


def _store(side: Side) -> str:
  formats = sorted(
    {
      leaf.spec.zarr_format
      for item in side.items
      for leaf in item.leaves
      if leaf.spec
    }
  )
  stores = sorted({item.store for item in side.items})
  return (
    f"{' and '.join(stores)}, zarr {' and '.join(f'v{n}' for n in formats)}"
  )


def _optimizer(side: Side) -> str:
  state = side.state
  if state.optimizer is None:
    return "none"
  return " in ".join((state.optimizer, *reversed(state.wrappers)))


def _updates(side: Side) -> str:
  return str(side.state.step.value) if side.state.step else "unknown"


def _notes(a: Side, b: Side, grouping: str) -> Iterable[str]:
  if grouping:
    yield grouping
  for side in (a, b):
    for item in side.items:
      yield from item.notes
