"""The cheapest exact way is taken, and says why if it is not the cheapest."""

import math

import pytest

from relayout.convert import ways
from relayout.convert.composition import Composed
from relayout.convert.compression import Compression
from relayout.convert.plan import Slot, Way
from relayout.errors import LayoutError
from tests.support import specs
from tests.support.leaves import stored_leaf, weight

_V2 = specs.spec_of_v2
_V3 = specs.spec_of_v3
_KEEP = ways.Wishes()


def _whole(spec, layers=()):
  return Composed(weight("w"), (Slot(stored_leaf("w", spec)),), layers)


def _taken(spec, axis):
  """One layer of a stack."""
  return Composed(weight("w"), (Slot(stored_leaf("w", spec), ((axis, 0),)),))


def _stack(layer_specs, axis):
  slots = tuple(
    Slot(stored_leaf(f"layers_{i}", spec), (), ((axis, i),))
    for i, spec in enumerate(layer_specs)
  )
  return Composed(weight("w"), slots, ((axis, len(slots)),))


def _moved(spec, source, target):
  """A stack whose layer axis goes elsewhere."""
  stored = stored_leaf("w", spec)
  length = spec.shape[source]
  slots = tuple(
    Slot(stored, ((source, i),), ((target, i),)) for i in range(length)
  )
  return Composed(weight("w"), slots, ((target, length),))


def _choose(composed, dtype=None, wishes=_KEEP):
  spec, stored = ways.choose(composed, dtype, wishes)
  assert stored.slots == composed.slots
  assert (stored.way is Way.REWRITTEN) is bool(stored.reason)
  return spec, stored.way, stored.reason


@pytest.mark.parametrize("spec", [_V2((6, 4), (3, 4)), _V3((6, 4), (3, 4))])
def test_an_array_that_stays_is_rekeyed(spec):
  assert _choose(_whole(spec)) == (spec, Way.REKEYED, "")


def test_a_stack_of_layers_is_rekeyed():
  spec, way, _ = _choose(_stack([_V2((6, 4), (3, 4))] * 5, 1))
  assert way is Way.REKEYED
  assert (spec.shape, spec.chunk_shape) == ((6, 5, 4), (3, 1, 4))


def test_a_layer_that_has_chunks_of_its_own_is_rekeyed():
  spec, way, _ = _choose(_taken(_V2((6, 5, 4), (3, 1, 4)), 1))
  assert way is Way.REKEYED
  assert (spec.shape, spec.chunk_shape) == ((6, 4), (3, 4))


def test_layers_that_move_with_chunks_of_their_own_are_rekeyed():
  spec, way, _ = _choose(_moved(_V2((6, 5, 4), (3, 1, 4)), 1, 0))
  assert way is Way.REKEYED
  assert (spec.shape, spec.chunk_shape) == ((5, 6, 4), (1, 3, 4))


def test_a_layer_in_chunks_that_span_layers_is_rewritten():
  spec, way, reason = _choose(_taken(_V2((6, 28, 4), (3, 28, 4)), 1))
  assert (way, reason) == (Way.REWRITTEN, "chunks span 28 layers")
  assert (spec.shape, spec.chunk_shape) == ((6, 4), (3, 4))


def test_the_last_chunk_spans_only_the_layers_there_are():
  _, _, reason = _choose(_taken(_V2((6, 3, 4), (3, 8, 4)), 1))
  assert reason == "chunks span 3 layers"


def test_a_single_layer_in_a_longer_chunk_is_rewritten():
  """The chunk is padded, so its bytes are those of several layers."""
  _, way, _ = _choose(_taken(_V2((6, 1, 4), (3, 8, 4)), 1))
  assert way is Way.REWRITTEN


def test_a_layer_that_has_inner_chunks_is_rekeyed_inside_a_shard():
  spec, way, _ = _choose(_taken(_V3((6, 4, 4), (6, 4, 4), (3, 1, 2)), 1))
  assert way is Way.REKEYED_IN_SHARD
  assert spec.shape == (6, 4)
  assert (spec.chunk_shape, spec.inner_chunk_shape) == ((3, 2), None)


def test_inner_chunks_that_span_layers_are_rewritten():
  _, way, reason = _choose(_taken(_V3((6, 4, 4), (6, 4, 4), (3, 2, 4)), 1))
  assert (way, reason) == (Way.REWRITTEN, "chunks span 2 layers")


def test_shards_that_pass_through_another_codec_are_rewritten():
  codecs = [specs.sharding((3, 1, 4)), specs.ZSTD]
  _, way, reason = _choose(
    _taken(_V3((6, 4, 4), (6, 4, 4), (3, 1, 4), codecs=codecs), 1)
  )
  assert way is Way.REWRITTEN
  assert "sharding_indexed stands alone" in reason


def test_shards_of_one_layer_stay_shards():
  spec, way, _ = _choose(_taken(_V3((6, 4, 4), (6, 1, 4), (3, 1, 4)), 1))
  assert way is Way.REKEYED
  assert (spec.chunk_shape, spec.inner_chunk_shape) == ((6, 4), (3, 4))


@pytest.mark.parametrize(
  "other",
  [
    _V2((6, 4), (2, 4)),
    _V2((6, 4), (3, 4), compressor=None),
    _V2((6, 4), (3, 4), dtype=">f4"),
    _V2((6, 4), (3, 4), order="F"),
    _V2((6, 4), (3, 4), fill_value=1.0),
    _V3((6, 4), (3, 4)),
  ],
)
def test_unlike_layers_of_a_stack_are_rewritten(other):
  spec, way, reason = _choose(_stack([_V2((6, 4), (3, 4)), other], 1))
  assert way is Way.REWRITTEN
  assert "layers_1" in reason
  assert (spec.shape, spec.chunk_shape) == ((6, 2, 4), (3, 1, 4))


@pytest.mark.parametrize(
  ("other", "what"),
  [
    (_V2((6, 5), (3, 5)), "shape"),
    (_V2((6, 4), (3, 4), dtype="<f2"), "data type"),
  ],
)
def test_layers_of_other_shapes_or_types_are_no_stack(other, what):
  with pytest.raises(LayoutError, match=rf"items/layers_1: {what} .*layers_0"):
    _choose(_stack([_V2((6, 4), (3, 4)), other], 1))


def test_f_order_and_big_endian_are_rewritten_when_layers_are_taken():
  f_order = _V2((6, 4, 4), (6, 1, 4), order="F", dtype=">f4")
  spec, way, reason = _choose(_taken(f_order, 1))
  assert way is Way.REWRITTEN
  assert "another order than C" in reason
  assert spec.raw["order"] == "C"
  assert spec.raw["dtype"] == "<f4"
  assert _choose(_whole(f_order))[1] is Way.REKEYED


def test_another_type_is_rewritten():
  spec, way, reason = _choose(_whole(_V2((6, 4), (3, 4))), "bfloat16")
  assert (way, reason) == (Way.REWRITTEN, "float32 becomes bfloat16")
  assert (spec.dtype, spec.chunk_shape) == ("bfloat16", (3, 4))
  assert _choose(_whole(_V2((6, 4), (3, 4))), "float32")[1] is Way.REKEYED


@pytest.mark.parametrize(
  ("compression", "way", "compressor"),
  [
    (Compression("none"), Way.REWRITTEN, None),
    (Compression("zstd", 1), Way.REKEYED, {"id": "zstd", "level": 1}),
    (Compression("zstd", 9), Way.REWRITTEN, {"id": "zstd", "level": 9}),
  ],
)
def test_another_compression_is_rewritten(compression, way, compressor):
  wishes = ways.Wishes(compression=compression)
  spec, found, reason = _choose(_whole(_V2((6, 4), (3, 4))), None, wishes)
  assert found is way
  assert spec.raw["compressor"] == compressor
  assert ("compression" in reason) is (way is Way.REWRITTEN)


def test_one_layer_of_another_compression_is_enough_to_rewrite():
  layer_specs = [
    _V2((6, 4), (3, 4), compressor={"id": "zstd", "level": level})
    for level in (1, 2)
  ]
  assert _choose(_stack(layer_specs, 1))[1] is Way.REKEYED
  wishes = ways.Wishes(compression=Compression("zstd", 1))
  assert _choose(_stack(layer_specs, 1), None, wishes)[1] is Way.REWRITTEN


def test_chunks_above_chunk_bytes_are_cut():
  spec = _V2((6, 4), (3, 4))
  assert _choose(_whole(spec), None, ways.Wishes(chunk_bytes=48))[1] is (
    Way.REKEYED
  )
  cut, way, reason = _choose(_whole(spec), None, ways.Wishes(chunk_bytes=47))
  assert way is Way.REWRITTEN
  assert reason == "chunks of [3, 4] exceed --chunk_bytes"
  assert math.prod(cut.chunk_shape) * 4 <= 47
  assert cut.shape == spec.shape


@pytest.mark.parametrize(
  ("spec", "way"),
  [
    (_V2((6, 5, 4), (3, 5, 4)), Way.REWRITTEN),
    (_V2((6, 5, 4), (3, 1, 4)), Way.REKEYED),
    (_V3((6, 4, 4), (6, 4, 4), (3, 1, 4)), Way.REKEYED_IN_SHARD),
  ],
)
def test_chunks_like_layers(spec, way):
  wishes = ways.Wishes(single_layer_chunks=True)
  found, chosen, _ = _choose(_whole(spec, ((1, spec.shape[1]),)), None, wishes)
  assert chosen is way
  assert found.shape == spec.shape
  assert (found.chunk_shape[1], found.inner_chunk_shape) == (1, None)


def test_chunks_like_layers_leave_other_arrays_alone():
  wishes = ways.Wishes(single_layer_chunks=True)
  spec = _V2((6, 5, 4), (3, 5, 4))
  assert _choose(_whole(spec), None, wishes) == (spec, Way.REKEYED, "")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_is_rewritten_keeps_format_level_and_fill_value(zarr_format):
  make = _V2 if zarr_format == 2 else _V3
  source = make((6, 28, 4), (3, 28, 4), fill_value=2.5)
  spec, way, _ = _choose(_taken(source, 1))
  assert way is Way.REWRITTEN
  assert spec.zarr_format == zarr_format
  assert spec.raw["fill_value"] == 2.5
  if zarr_format == 2:
    assert spec.raw["compressor"] == {"id": "zstd", "level": 1}
  else:
    assert spec.raw["codecs"][1]["configuration"]["level"] == 1


def test_chunks_that_are_rewritten_fit_in_memory_together():
  """The layers of one stretch of the source chunk are made at once."""
  wishes = ways.Wishes(memory_limit=16 << 20)
  source = _V2((4096, 32, 1024), (4096, 32, 1024))
  spec, _, _ = _choose(_taken(source, 1), None, wishes)
  assert math.prod(spec.chunk_shape) * 4 * 32 <= (16 << 20) // 8
  assert spec.chunk_shape[1] == 1024
