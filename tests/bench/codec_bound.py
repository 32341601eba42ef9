"""Measures what no conversion can be faster than: the codec's own work."""

import math
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench import relayout_unstack, scanned, sides
from tests.bench.samples import Sample

# Offset and length of the only chunk, and the checksum: at the shard's end.
_INDEX_BYTES = 16 + 4
_LEVEL = 3


def start(program: Path, what: scanned.Scanned) -> sides.Run:
  """Returns what runs `program`, codec_bound, on the chunks of a source."""

  def run(source: Path, target: Path) -> Sample:
    target.mkdir()
    sample = sides.call(measure, program, source, what)
    assert isinstance(sample, Sample)
    return sample

  return run


def measure(program: Path, source: Path, what: scanned.Scanned) -> Sample:
  """Returns the time of decoding and encoding all values on all processors."""
  from relayout import _native

  listing = _native.list_database(scanned.item(source))
  keys = [f"{name}/c/0/0/0".encode() for name in what.arrays]
  lengths = [listing.num_value_bytes(key) - _INDEX_BYTES for key in keys]
  arguments = (what.num_array_bytes, _piece_bytes(source, what), _LEVEL)
  with subprocess.Popen(
    [program, *map(str, (*arguments, *lengths))],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  ) as process:
    assert process.stdin is not None
    assert process.stdout is not None
    for frame in _frames(listing, keys, lengths):
      process.stdin.write(frame)
    process.stdin.close()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
  if process.returncode != 0:
    raise RuntimeError(f"{program} failed")
  return Sample(sum(map(float, output.split())), usage.ru_maxrss * 1024)


def _frames(
  listing: Any, keys: list[bytes], lengths: list[int]
) -> Iterator[bytes]:
  for key, length in zip(keys, lengths, strict=True):
    yield listing.read(key, length=length)


def _piece_bytes(source: Path, what: scanned.Scanned) -> int:
  """Returns the size of the chunks that relayout encodes."""
  chunk_shape = relayout_unstack.planned_chunk_shape(source)
  itemsize = what.num_array_bytes // math.prod(what.shape)
  return math.prod(chunk_shape) * itemsize
