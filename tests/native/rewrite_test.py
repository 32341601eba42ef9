"""`plan_rewrite` and `rewrite`, at their edges."""

import itertools
import warnings

import numpy as np
import pytest
import tensorstore as ts

from relayout import _native, errors
from tests.native import rewriting

MIB = 1 << 20
FLOATS = ("float16", "bfloat16", "float32", "float64")


def database(tmp_path, form, values):
  rewriting.write_array(tmp_path / "source", "a", form, values, store_fill=True)
  return _native.list_database(tmp_path / "source")


def difficult_numbers(dtype):
  """Returns all numbers of 16 bits, and those beside and between them."""
  element = ts.dtype(dtype).numpy_dtype
  halves = np.arange(1 << 16, dtype=np.uint16)
  if element.itemsize == 2:
    return halves.view(element)
  bits = element.itemsize * 8
  integer = np.dtype(f"u{element.itemsize}")
  near = []
  with warnings.catch_warnings(), np.errstate(all="ignore"):
    warnings.simplefilter("ignore")
    for half in ("float16", "bfloat16"):
      narrow = halves.view(ts.dtype(half).numpy_dtype)
      wide = narrow.astype(np.float32).astype(element).view(integer)
      for shift in range(0, bits // 2, 4):
        step = integer.type(1 << shift)
        near += [wide, wide + step, wide - step]
  random = np.random.default_rng(0).bytes(100_000 * element.itemsize)
  near.append(np.frombuffer(random, integer))
  return np.concatenate(near).view(element)


@pytest.mark.parametrize(
  ("source", "target"), [*itertools.permutations(FLOATS, 2)]
)
def test_casts_as_numpy(tmp_path, source, target):
  values = difficult_numbers(source)
  form = rewriting.Form(values.shape, (100_003,), source, zstd_level=1)
  listing = database(tmp_path, form, values)
  target_form = rewriting.Form(
    values.shape, values.shape, target, zstd_level=None
  )
  plan = _native.plan_rewrite(
    [rewriting.plain_task(listing, form, target_form)], memory_limit=256 * MIB
  )
  rewriting.rewrite(plan, tmp_path / "target")
  with np.errstate(all="ignore"):
    want = values.astype(target_form.element)
  assert (tmp_path / "target/d/0").read_bytes() == want.tobytes()


@pytest.fixture
def small(tmp_path):
  """A task that writes 8 MiB in chunks of 64 KiB."""
  form = rewriting.Form((2048, 1024), (2048, 1024))
  values = np.random.default_rng(0).standard_normal(form.shape, np.float32)
  listing = database(tmp_path, form, values)
  return rewriting.plain_task(
    listing, form, rewriting.Form(form.shape, (16, 1024))
  )


def test_plan_counts_bytes(small):
  plan = _native.plan_rewrite([small], memory_limit=16 * MIB, num_threads=2)
  assert plan.num_source_bytes == plan.num_target_bytes == 8 * MIB
  assert 7 * MIB < plan.num_stored_bytes < 8 * MIB
  assert plan.num_streamed_bytes == 8 * MIB  # once
  assert plan.num_units == 4  # of an eighth of the limit
  assert 4 * MIB < plan.expected_memory_bytes <= 16 * MIB


def test_result_tells_what_was_done(tmp_path, small):
  plan = _native.plan_rewrite([small], memory_limit=16 * MIB, num_threads=2)
  result = rewriting.rewrite(plan, tmp_path / "target")
  assert result.num_bytes_read == plan.num_stored_bytes
  size = (tmp_path / "target/d/0").stat().st_size
  assert result.num_bytes_written == size
  assert result.num_chunks_written == 128
  assert 0 < result.peak_buffer_bytes <= 16 * MIB
  assert set(result.phase_seconds) == {
    "read",
    "decode",
    "copy",
    "encode",
    "write",
    "wait",
  }
  assert result.phase_seconds["encode"] > 0
  (array,) = result.listing.arrays()
  assert (array.name, array.num_chunks) == ("b", 128)
  assert [file.path for file in result.listing.files] == ["d/0"]


def test_progress_rises_to_all(tmp_path, small):
  calls = []
  plan = _native.plan_rewrite([small], memory_limit=16 * MIB)
  rewriting.rewrite(
    plan, tmp_path / "target", progress=lambda *call: calls.append(call)
  )
  assert calls == sorted(calls)
  assert calls[-1] == (8 * MIB, 8 * MIB)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_progress_may_end_it(tmp_path, small, error):
  def progress(done, total):
    raise error

  plan = _native.plan_rewrite([small], memory_limit=16 * MIB)
  with pytest.raises(error):
    rewriting.rewrite(plan, tmp_path / "target", progress=progress)
  assert not (tmp_path / "target/d/0").exists()


def test_limit_too_small_names_the_array(small):
  with pytest.raises(ValueError, match=r'array "b".*at least \d+ bytes.*65536'):
    _native.plan_rewrite([small], memory_limit=65536)


def test_window_beyond_the_limit_names_the_array(tmp_path):
  # The highest levels look back as far as 128 MiB.
  form = rewriting.Form((40 * MIB,), (40 * MIB,), "uint8", zstd_level=20)
  listing = database(tmp_path, form, np.zeros(form.shape, np.uint8))
  task = rewriting.plain_task(
    listing, form, rewriting.Form(form.shape, (MIB,), "uint8")
  )
  plan = _native.plan_rewrite([task], memory_limit=16 * MIB)
  with pytest.raises(ValueError, match=r'"a".*memory limit of 16777216'):
    rewriting.rewrite(plan, tmp_path / "target")


def test_lower_listings_fill_in(tmp_path):
  forms = rewriting.Form((4,), (2,), "int32")
  for name, values in (("one", [0, 0, 3, 4]), ("two", [1, 2, 9, 9])):
    rewriting.write_array(
      tmp_path / name, "a", forms, np.array(values, np.int32)
    )
  listings = [_native.list_database(tmp_path / n) for n in ("one", "two")]
  target = rewriting.Form((4,), (4,), "int32", zstd_level=None)
  plan = _native.plan_rewrite(
    [rewriting.plain_task(listings, forms, target)], memory_limit=16 * MIB
  )
  rewriting.rewrite(plan, tmp_path / "target")
  written = np.fromfile(tmp_path / "target/d/0", np.int32)
  assert written.tolist() == [1, 2, 3, 4]


CHAINS = (["crc32c"], ["zstd", "crc32c"], ["crc32c", "zstd"])


def write_zarr3(directory, values, codecs):
  ts.open(
    {
      "driver": "zarr3",
      "kvstore": {
        "driver": "ocdbt",
        "base": f"file://{directory}/",
        "path": "a/",
      },
      "metadata": {
        "shape": values.shape,
        "data_type": str(values.dtype),
        "codecs": [
          {"name": "bytes", "configuration": {"endian": "little"}},
          *({"name": name} for name in codecs),
        ],
      },
    },
    create=True,
  ).result().write(values).result()


@pytest.mark.parametrize("codecs", CHAINS, ids="-".join)
@pytest.mark.parametrize("num_rows", [10, 1000])
def test_checksums_of_zarr3(tmp_path, codecs, num_rows):
  values = np.random.default_rng(0).standard_normal((num_rows, 300))
  write_zarr3(tmp_path / "source", values, codecs)
  listing = _native.list_database(tmp_path / "source")
  target = rewriting.Form(values.shape, (7, 300), "float64", zstd_level=None)
  source = _native.RewriteSource(
    listing,
    "a",
    _native.ChunkKeyFormat("default", "/"),
    values.shape,
    values.shape,
    "float64",
    codecs=codecs,
    fill_value=bytes(8),
  )
  task = _native.RewriteTask(
    values.shape,
    [],
    [source],
    [rewriting.target("b", target)],
    source_axes=[0, 1],
    target_axes=[0, 1],
  )
  plan = _native.plan_rewrite([task], memory_limit=16 * MIB)
  result = rewriting.rewrite(plan, tmp_path / "target")
  rewriting.make_database(result, tmp_path / "target")
  got = rewriting.read_array(tmp_path / "target", "b")
  assert got.tobytes() == values.tobytes()
  # A bit in the middle of the largest data file: in the chunk.
  file = max((tmp_path / "source/d").iterdir(), key=lambda p: p.stat().st_size)
  data = bytearray(file.read_bytes())
  data[len(data) // 2] ^= 1
  file.write_bytes(data)
  with pytest.raises(errors.CorruptCheckpointError, match='array "a", chunk'):
    rewriting.rewrite(plan, tmp_path / "damaged")


def test_unknown_codec():
  listing_error = r'codec "gzip" can\'t be decoded'
  with pytest.raises(errors.UnsupportedError, match=listing_error):
    _native.RewriteSource(
      [],
      "a",
      rewriting.V2,
      [1],
      [1],
      "int8",
      codecs=["gzip"],
      fill_value=b"\0",
    )
