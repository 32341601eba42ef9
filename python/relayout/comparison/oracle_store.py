"""A store of an item that TensorStore reads, not relayout's own reader."""

import dataclasses

from relayout.comparison.oracle import Oracle
from relayout.metadata import zarr_array
from relayout.metadata.item_store import IN_NO_LISTING, Store, StoredArray


@dataclasses.dataclass(frozen=True, slots=True)
class OracleStore(Store):
  """A `Store` on top of an `Oracle`.

  Attributes:
    oracle: Reads the keys.
  """

  oracle: Oracle

  def read_chunk(self, array: StoredArray, chunk_key: str) -> bytes | None:
    """Returns the stored bytes of a chunk, or None if it is absent."""
    key = f"{array.name}/{chunk_key}"
    return self.oracle.read_keys({array.name: key})[array.name]


def open_oracle_store(oracle: Oracle) -> OracleStore:
  """Returns the store that `oracle` reads.

  Raises:
    CorruptCheckpointError: If the metadata of an array is damaged.
    UnsupportedError: If an array is of a kind that relayout doesn't know.
  """
  keys = oracle.metadata_keys()
  return OracleStore(
    directory=oracle.directory,
    kind="ocdbt" if oracle.is_ocdbt else "zarr",
    listings=(),
    arrays={
      name: _stored_array(oracle, name, keys[name], data or b"")
      for name, data in oracle.read_keys(keys).items()
    },
    notes=(),
    oracle=oracle,
  )


def _stored_array(
  oracle: Oracle, name: str, key: str, metadata: bytes
) -> StoredArray:
  return StoredArray(
    name=name,
    spec=zarr_array.parse_array_metadata(key, metadata),
    listing=IN_NO_LISTING,
    other_listings=(),
    num_chunks=oracle.arrays[name].num_chunks,
    num_stored_bytes=0,
  )
