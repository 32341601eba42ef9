"""Array metadata of zarr v2: `.zarray`.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html
"""

from relayout import errors
from relayout.metadata import zarr_dtype, zarr_fill, zarr_shape
from relayout.metadata.json_value import JsonValue
from relayout.tree.array_spec import ArraySpec


def parse(metadata: JsonValue) -> ArraySpec:
  """Returns the spec that a `.zarray` describes.

  Raises:
    CorruptCheckpointError: If a field is absent or not what zarr v2 defines.
    UnsupportedError: If the elements are not numbers.
  """
  metadata["zarr_format"].integer(minimum=2, maximum=2)
  dtype = _dtype(metadata["dtype"])
  shape = zarr_shape.lengths(metadata["shape"])
  chunk_shape = zarr_shape.chunk_lengths(metadata["chunks"], shape)
  zarr_shape.check_num_bytes(metadata, dtype, shape, chunk_shape)
  _check_order(metadata["order"])
  _check_codecs(metadata)
  zarr_fill.check(metadata["fill_value"], may_be_null=True)
  return ArraySpec(
    shape=shape,
    dtype=dtype,
    chunk_shape=chunk_shape,
    inner_chunk_shape=None,
    zarr_format=2,
    key_style="v2",
    key_separator=zarr_shape.separator(metadata, "dimension_separator", "."),
    raw=metadata.members(),
  )


def _dtype(value: JsonValue) -> str:
  if isinstance(value.value, list):
    raise errors.UnsupportedError(
      f"{value.where}: elements are structures of several fields; relayout"
      " knows only arrays of numbers; leave this array out"
    )
  return zarr_dtype.parse_v2(value.text(), value.where)[0]


def _check_order(value: JsonValue) -> None:
  if value.text() not in ("C", "F"):
    value.fail("'C' or 'F'")


def _check_codecs(metadata: JsonValue) -> None:
  compressor = metadata.get("compressor")
  if compressor is not None:
    compressor["id"].text()
  filters = metadata.get("filters")
  if filters is not None:
    for each in filters.elements():
      each["id"].text()
