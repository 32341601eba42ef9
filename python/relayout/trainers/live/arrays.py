"""Reads stored arrays, or layers of them, to where live arrays lie.

Each device gets its own part only, straight from the chunks that hold it;
TensorStore decodes them.
"""

import dataclasses
import functools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from relayout.comparison.oracle import READ_ERRORS, Oracle, open_oracle
from relayout.convert.plan import Pins, Slot
from relayout.errors import CorruptCheckpointError
from relayout.layouts.state import StoredLeaf

if TYPE_CHECKING:
  import tensorstore as ts

type Index = tuple[slice, ...]

_BYTES_AHEAD = 1 << 30
"""Values that are read at once, ahead of those that are put on devices."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
  """An array to be made.

  Attributes:
    name: How the caller knows it.
    slots: What it is made of.
    shape: Its shape.
    dtype: Its data type; that of the slots may be another one.
    sharding: Where it shall lie; None: on the default device, from which JAX
      moves it to where it is needed.
  """

  name: str
  slots: tuple[Slot, ...]
  shape: tuple[int, ...]
  dtype: np.dtype[Any]
  sharding: jax.sharding.Sharding | None


def sharding_of(array: Any) -> jax.sharding.Sharding | None:
  """Returns where an array lies, as `Wanted` has it."""
  if isinstance(array, jax.Array) and array.committed:
    return array.sharding
  return None


class Reader:
  """Opens arrays of items, each once."""

  def __init__(self) -> None:
    self._oracles: dict[Path, Oracle] = {}
    self._open = functools.cache(self._open_anew)

  def open(self, stored: StoredLeaf) -> "ts.TensorStore":
    """Returns the array of a leaf.

    Raises:
      CorruptCheckpointError: If it can't be opened.
    """
    return self._open(stored.item.directory, stored.leaf.name)

  def _open_anew(self, directory: Path, name: str) -> "ts.TensorStore":
    if directory not in self._oracles:
      self._oracles[directory] = open_oracle(directory)
    return self._oracles[directory].open(name)


def read_arrays(wanted: Iterable[Wanted]) -> Iterator[tuple[str, jax.Array]]:
  """Reads arrays, several at once.

  Args:
    wanted: The arrays.

  Yields:
    Name and array, in the order of `wanted`.

  Raises:
    CorruptCheckpointError: If values can't be read; names the array.
  """
  reader = Reader()
  pending: deque[_Reading] = deque()
  num_bytes = 0
  for each in wanted:
    reading = _Reading(each, reader)
    pending.append(reading)
    num_bytes += reading.num_bytes
    while len(pending) > 1 and num_bytes > _BYTES_AHEAD:
      num_bytes -= pending[0].num_bytes
      yield pending.popleft().finish()
  while pending:
    yield pending.popleft().finish()


class _Reading:
  """One array on its way to the devices of this process."""

  def __init__(self, wanted: Wanted, reader: Reader) -> None:
    self._wanted = wanted
    indices: Mapping[Any, Index | None] = {None: None}
    if wanted.sharding is not None:
      indices = wanted.sharding.addressable_devices_indices_map(wanted.shape)
    self._index_of = {
      device: _normal(index, wanted.shape) for device, index in indices.items()
    }
    self._buffers: dict[tuple[tuple[int, int], ...], np.ndarray] = {}
    self._writes: list[tuple[StoredLeaf, Any]] = []
    arrays = [reader.open(slot.source) for slot in wanted.slots]
    for index in self._index_of.values():
      key = _key(index)
      if key not in self._buffers:
        dtype = arrays[0].dtype.numpy_dtype
        shape = tuple(part.stop - part.start for part in index)
        self._buffers[key] = np.empty(shape, dtype)
        self._start(arrays, index, self._buffers[key])

  @property
  def num_bytes(self) -> int:
    """Size of what is read, bytes."""
    return sum(buffer.nbytes for buffer in self._buffers.values())

  def _start(
    self, arrays: Sequence["ts.TensorStore"], index: Index, buffer: np.ndarray
  ) -> None:
    """Starts to read the part of the array at `index` into `buffer`."""
    import tensorstore as ts

    for slot, array in zip(self._wanted.slots, arrays, strict=True):
      if not _is_within(slot.target_pins, index):
        continue
      part = buffer[_pinned(slot.target_pins, index)]
      if part.size == 0:
        continue
      source = array[_source_index(slot, index, array.rank)]
      write = ts.array(part, copy=False, write=True).write(source)
      self._writes.append((slot.source, write))

  def finish(self) -> tuple[str, jax.Array]:
    """Waits for the values and puts them on the devices."""
    for stored, write in self._writes:
      try:
        write.result()
      except READ_ERRORS as error:
        raise CorruptCheckpointError(
          f"{stored.item.directory}: {stored.leaf.name}: {error}"
        ) from error
    wanted = self._wanted
    cast = {
      key: buffer.astype(wanted.dtype, copy=False)
      for key, buffer in self._buffers.items()
    }
    parts = [
      jax.device_put(cast[_key(index)], device)
      for device, index in self._index_of.items()
    ]
    if wanted.sharding is None:
      return wanted.name, parts[0]
    array = jax.make_array_from_single_device_arrays(
      wanted.shape, wanted.sharding, parts
    )
    return wanted.name, array


def _normal(index: Index | None, shape: Sequence[int]) -> Index:
  """Returns an index with a start and a stop for each axis."""
  parts = index or (slice(None),) * len(shape)
  return tuple(
    slice(*part.indices(length)[:2])
    for part, length in zip(parts, shape, strict=True)
  )


def _key(index: Index) -> tuple[tuple[int, int], ...]:
  return tuple((part.start, part.stop) for part in index)


def _is_within(pins: Pins, index: Index) -> bool:
  return all(
    index[axis].start <= place < index[axis].stop for axis, place in pins
  )


def _pinned(pins: Pins, index: Index) -> tuple[Any, ...]:
  """Returns where a layer lies in a buffer that holds `index`."""
  places = {axis: place - index[axis].start for axis, place in pins}
  parts = (places.get(axis, slice(None)) for axis in range(len(index)))
  return (*parts, ...)  # a view, of an array without axes, too


def _source_index(slot: Slot, index: Index, rank: int) -> tuple[Any, ...]:
  """Returns which values of the source array a part of the target has."""
  pinned = {axis for axis, _ in slot.target_pins}
  free = iter([part for axis, part in enumerate(index) if axis not in pinned])
  places: dict[int, int] = dict(slot.source_pins)
  return tuple(
    places[axis] if axis in places else next(free) for axis in range(rank)
  )
