"""Array metadata of zarr v3: `zarr.json`.

https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html
"""

from typing import Literal

from relayout import errors
from relayout.metadata import zarr_codecs, zarr_dtype, zarr_fill, zarr_shape
from relayout.metadata.json_value import JsonValue
from relayout.tree.array_spec import ArraySpec

_FIELDS = frozenset(
  {
    "attributes",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "data_type",
    "dimension_names",
    "fill_value",
    "node_type",
    "shape",
    "storage_transformers",
    "zarr_format",
  }
)


def parse(metadata: JsonValue) -> ArraySpec:
  """Returns the spec that a `zarr.json` describes.

  Raises:
    CorruptCheckpointError: If a field is absent or not what zarr v3 defines.
    UnsupportedError: If it uses an extension that can change what chunks mean.
  """
  metadata["zarr_format"].integer(minimum=3, maximum=3)
  if metadata["node_type"].text() != "array":
    metadata["node_type"].fail("'array'")
  dtype = _dtype(metadata["data_type"])
  shape = zarr_shape.lengths(metadata["shape"])
  chunk_shape = _chunk_shape(metadata["chunk_grid"], shape)
  zarr_shape.check_num_bytes(metadata, dtype, shape, chunk_shape)
  key_style, key_separator = _key_encoding(metadata["chunk_key_encoding"])
  zarr_fill.check(metadata["fill_value"], may_be_null=False)
  _check_dimension_names(metadata, len(shape))
  _check_extensions(metadata)
  return ArraySpec(
    shape=shape,
    dtype=dtype,
    chunk_shape=chunk_shape,
    inner_chunk_shape=zarr_codecs.check(metadata["codecs"], chunk_shape),
    zarr_format=3,
    key_style=key_style,
    key_separator=key_separator,
    raw=metadata.members(),
  )


def _dtype(value: JsonValue) -> str:
  name = value.value
  if isinstance(name, dict):
    name = value["name"].text()
  elif not isinstance(name, str):
    value.fail("the name of a data type")
  return zarr_dtype.parse_v3(name, value.where)


def _chunk_shape(grid: JsonValue, shape: tuple[int, ...]) -> tuple[int, ...]:
  name = grid["name"].text()
  if name != "regular":
    raise errors.UnsupportedError(
      f"{grid.where}: chunk grid {name[:40]!r}; relayout knows 'regular'"
    )
  return zarr_shape.chunk_lengths(grid["configuration"]["chunk_shape"], shape)


def _key_encoding(
  encoding: JsonValue,
) -> tuple[Literal["v2", "default"], str]:
  """Returns the style of chunk keys and their separator."""
  if isinstance(encoding.value, str):
    name, configuration = encoding.value, None
  else:
    name, configuration = encoding["name"].text(), encoding.get("configuration")
  default = {"default": "/", "v2": "."}.get(name)
  if default is None:
    raise errors.UnsupportedError(
      f"{encoding.where}: chunk key encoding {name[:40]!r}; relayout knows"
      " 'default' and 'v2'"
    )
  key_separator = default
  if configuration is not None:
    key_separator = zarr_shape.separator(configuration, "separator", default)
  return ("v2" if name == "v2" else "default"), key_separator


def _check_dimension_names(metadata: JsonValue, rank: int) -> None:
  names = metadata.get("dimension_names")
  if names is None:
    return
  elements = names.elements()
  if len(elements) != rank:
    names.fail(f"{rank} dimension names, one an axis")
  for each in elements:
    if each.value is not None:
      each.text()


def _check_extensions(metadata: JsonValue) -> None:
  """Refuses what a reader must understand and relayout does not."""
  transformers = metadata.get("storage_transformers")
  if transformers is not None and transformers.elements():
    raise errors.UnsupportedError(
      f"{transformers.where}: relayout knows no storage transformers"
    )
  attributes = metadata.get("attributes")
  if attributes is not None:
    attributes.members()
  for key, value in metadata.items():
    if key in _FIELDS:
      continue
    if isinstance(value.value, dict) and (
      value.value.get("must_understand") is False
    ):
      continue
    raise errors.UnsupportedError(
      f"{value.where}: unknown extension of zarr v3, which may change what"
      " the chunks mean"
    )
