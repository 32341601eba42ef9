"""Arrays of zarr v2, as TensorStore and as the native rewrite see them."""

import dataclasses
import json

import numpy as np
import tensorstore as ts

from relayout import _native
from tests.native import oracle, rekeying

V2 = _native.ChunkKeyFormat("v2", ".")


@dataclasses.dataclass(frozen=True)
class Form:
  """How an array is stored."""

  shape: tuple[int, ...]
  chunk_shape: tuple[int, ...]
  dtype: str = "float32"  # as TensorStore names it
  zstd_level: int | None = 3
  big_endian: bool = False
  f_order: bool = False
  fill: int = 0

  @property
  def element(self):
    """The dtype of NumPy."""
    return ts.dtype(self.dtype).numpy_dtype

  @property
  def fill_value(self):
    return np.array(self.fill).astype(self.element).tobytes()

  def _dtype_name(self):
    order, name = self.element.str[0], self.element.str[1:]
    if self.dtype.startswith(("bfloat", "float8", "int4")):
      return self.dtype
    return order.replace("<", ">" if self.big_endian else "<") + name

  def _fill_value(self):
    fills = {"b": bool(self.fill), "c": [float(self.fill), 0.0]}
    return fills.get(self.element.kind, self.fill)

  def metadata(self):
    """Returns `.zarray`."""
    level = self.zstd_level
    return {
      "zarr_format": 2,
      "shape": self.shape,
      "chunks": self.chunk_shape,
      "dtype": self._dtype_name(),
      "fill_value": self._fill_value(),
      # TensorStore calls the order of less than two axes C.
      "order": "F" if self.f_order and len(self.shape) > 1 else "C",
      "filters": None,
      "dimension_separator": ".",
      "compressor": None if level is None else {"id": "zstd", "level": level},
    }


def _spec(directory, name):
  base = {"driver": "ocdbt", "base": f"file://{directory}/"}
  return {"driver": "zarr", "kvstore": base | {"path": f"{name}/"}}


def write_array(directory, name, form, values, *, store_fill=False):
  """Writes an array; chunks of the fill value are stored only if so said."""
  metadata = form.metadata()
  del metadata["zarr_format"]
  spec = _spec(directory, name) | {
    "metadata": metadata,
    "store_data_equal_to_fill_value": store_fill,
  }
  ts.open(spec, create=True).result().write(values).result()


def read_array(directory, name):
  return ts.open(_spec(directory, name), open=True).result().read().result()


def source(listing, name, form):
  rank = len(form.shape)
  return _native.RewriteSource(
    listing,
    name,
    V2,
    form.shape,
    form.chunk_shape,
    form.dtype,
    codecs=[] if form.zstd_level is None else ["zstd"],
    # `bfloat16` says no byte order.
    big_endian=form.big_endian and form.dtype != "bfloat16",
    axis_order=list(reversed(range(rank))) if form.f_order else None,
    fill_value=form.fill_value,
  )


def target(name, form, *, store_fill=False):
  return _native.RewriteTarget(
    name,
    V2,
    form.shape,
    form.chunk_shape,
    form.dtype,
    metadata_key=".zarray",
    metadata=json.dumps(form.metadata()).encode(),
    zstd_level=form.zstd_level,
    fill_value=form.fill_value,
    store_fill=store_fill,
  )


def plain_task(listing, source_form, target_form):
  """Rewrites array `a` as `b`, axis by axis."""
  axes = range(len(source_form.shape))
  return _native.RewriteTask(
    source_form.shape,
    [],
    [source(listing, "a", source_form)],
    [target("b", target_form)],
    source_axes=axes,
    target_axes=axes,
  )


def rewrite(plan, directory, **options):
  """Writes the chunks of `plan` to `d/0` below `directory`, which is new."""
  (directory / "d").mkdir(parents=True)
  return _native.rewrite(plan, directory=directory, data_file="d/0", **options)


def make_database(result, directory):
  """Makes a database of what `rewrite` wrote to `directory`."""
  plan = rekeying.plan_renames(result.listing, lambda name: name)
  return _native.apply_rekey(
    plan,
    directory=directory,
    file_paths=[file.path for file in plan.files],
    uuid=rekeying.UUID,
    max_inline_value_bytes=100,
    max_decoded_node_bytes=1 << 20,
    zstd_level=0,
    data_file="d/nodes",
    commit_time_ns=1,
  )


def make_empty_database(directory):
  kvstore = oracle.open_kvstore(directory, max_inline_value_bytes=100)
  kvstore.write(b"made", b"").result()
  kvstore.write(b"made", None).result()
