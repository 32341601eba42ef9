"""The cases in which a scanned checkpoint of MaxText is unscanned."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import (
  codec_bound,
  orbax_unstack,
  relayout_unstack,
  scanned,
  sides,
  tensorstore_unstack,
  unstacked_check,
)
from tests.bench.comparison import Case, Source
from tests.bench.scanned import Scanned
from tests.bench.sides import Side

type _Shape = tuple[int, int, int]
type _Check = Callable[[Path, Path], None]

_LARGE = 8
"""How many times larger the large source is."""


def make(
  shape: _Shape, relayout: Path, bound: Path, *, large: bool
) -> Iterator[Case]:
  """Yields the cases.

  Args:
    shape: Of a float32 array; one of bfloat16 is twice as wide.
    relayout: The launcher of `relayout`.
    bound: The program `codec_bound`.
    large: Whether to measure memory with eight times the data, too.
  """
  float32, bfloat16, raw = rewritten(shape).values()
  source = _source(float32)
  yield _compressed("unstack_float32", float32, source, bound)
  yield _memory("memory_1gib", float32, source, relayout)
  yield _compressed("unstack_bfloat16", bfloat16, _source(bfloat16), bound)
  yield _raw(raw)
  yield _in_shard(Scanned(shape, "float32", layer_chunks=True))
  if large:
    many = Scanned(shape, "float32", num_arrays=_LARGE * float32.num_arrays)
    yield _memory("memory_8gib", many, _source(many), relayout)


def rewritten(shape: _Shape) -> dict[str, Scanned]:
  """Returns what is rewritten, by the names of the rows."""
  rows, layers, columns = shape
  return {
    "unstack_float32": Scanned(shape, "float32"),
    "unstack_bfloat16": Scanned((rows, layers, 2 * columns), "bfloat16"),
    "unstack_raw": Scanned(shape, "float32", compressed=False),
  }


def _source(what: Scanned) -> Source:
  return Source(
    functools.partial(scanned.write_run, scanned=what),
    num_scratch_bytes=3 * what.num_bytes,
  )


def _ours(what: Scanned) -> Side:
  return Side(
    "relayout",
    sides.warm(relayout_unstack.convert),
    _checked(unstacked_check.check, what),
  )


def _checked(function: Callable[..., None], what: Scanned) -> _Check:
  return functools.partial(sides.call, functools.partial(function, what=what))


def _orbax(what: Scanned) -> Side:
  return Side(
    "Orbax: restore, unstack, save",
    sides.warm(orbax_unstack.restore_unstack_save),
    _checked(unstacked_check.check_database, what),
  )


def _compressed(name: str, what: Scanned, source: Source, bound: Path) -> Case:
  tensorstore = Side(
    "TensorStore: copy each layer",
    sides.warm(tensorstore_unstack.copy_layers),
    _checked(unstacked_check.check_database, what),
  )
  codec = Side(
    "zstd alone, on all cores",
    lambda: contextlib.nullcontext(codec_bound.start(bound, what)),
  )
  peers = {
    name: _orbax(what),
    f"{name}_tensorstore": tensorstore,
    f"{name}_bound": codec,
  }
  return Case(source, _ours(what), peers)


def _memory(name: str, what: Scanned, source: Source, relayout: Path) -> Case:
  """The program itself, its anonymous memory watched from outside."""
  started = sides.program(
    lambda source, target: [
      str(relayout),
      "convert",
      str(source),
      str(target),
      "--to=maxtext",
      "--scan_layers=false",
      "--layer_pattern=flat",
      f"--memory_limit={relayout_unstack.MEMORY_LIMIT}",
    ],
    synced=True,
    watched=True,
  )
  check = _checked(unstacked_check.check, what)
  # A round says it: it is a matter of bytes, not of seconds.
  return Case(source, Side("relayout", started, check), {name: None}, 1)


def _raw(what: Scanned) -> Case:
  copy = sides.program(
    lambda source, target: ["cp", "-r", str(source), str(target)],
    synced=False,
  )
  return Case(_source(what), _ours(what), {"unstack_raw": Side("cp -r", copy)})


def _in_shard(what: Scanned) -> Case:
  ours = Side(
    "relayout",
    sides.warm(relayout_unstack.convert),
    _checked(unstacked_check.check_nothing_is_new, what),
  )
  return Case(_source(what), ours, {"unstack_in_shard": _orbax(what)})
