"""The codec chain of a zarr v3 array.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/index.html
"""

from relayout.metadata import zarr_shape
from relayout.metadata.json_value import JsonValue


def check(
  chain: JsonValue, chunk_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
  """Checks the chain of codecs of chunks of `chunk_shape`.

  Codecs that relayout doesn't know pass: whoever must decode refuses them.

  Returns:
    Inner chunk shape of the outermost `sharding_indexed`, its axes in the
    order of the array's; None without such a codec.

  Raises:
    CorruptCheckpointError: If a known codec is not configured as zarr v3
      defines, or no codec turns the array into bytes.
  """
  order = tuple(range(len(chunk_shape)))
  inner = None
  num_to_bytes = 0
  for codec in chain.elements():
    name = name_of(codec)
    if name == "transpose":
      order = _transposed(codec, order)
    elif name == "sharding_indexed":
      num_to_bytes += 1
      inner = _check_sharding(
        codec["configuration"], tuple(chunk_shape[axis] for axis in order)
      )
    elif name == "bytes":
      num_to_bytes += 1
      _check_bytes(codec)
  if num_to_bytes > 1 or not chain.elements():
    chain.fail("one codec that turns the array into bytes")
  return None if inner is None else _untransposed(inner, order)


def name_of(codec: JsonValue) -> str:
  """Returns the name of a codec; one without options may be just its name."""
  if isinstance(codec.value, str):
    return codec.value
  configuration = codec.get("configuration")
  if configuration is not None:
    configuration.members()
  return codec["name"].text()


def _check_bytes(codec: JsonValue) -> None:
  if isinstance(codec.value, str):
    return
  configuration = codec.get("configuration")
  endian = configuration and configuration.get("endian")
  if endian is not None and endian.text() not in ("little", "big"):
    endian.fail("'little' or 'big'")


def _transposed(codec: JsonValue, order: tuple[int, ...]) -> tuple[int, ...]:
  """Returns the order of axes behind `codec`, given that before it."""
  value = codec["configuration"]["order"]
  if value.value == "C":
    return order
  if value.value == "F":
    return order[::-1]
  axes = value.integers(minimum=0, maximum=len(order))
  if sorted(axes) != list(range(len(order))):
    value.fail(f"a permutation of the {len(order)} axes")
  return tuple(order[axis] for axis in axes)


def _untransposed(
  shape: tuple[int, ...], order: tuple[int, ...]
) -> tuple[int, ...]:
  result = [0] * len(shape)
  for length, axis in zip(shape, order, strict=True):
    result[axis] = length
  return tuple(result)


def _check_sharding(
  configuration: JsonValue, shard_shape: tuple[int, ...]
) -> tuple[int, ...]:
  """Returns the inner chunk shape, its axes in the order of `shard_shape`."""
  value = configuration["chunk_shape"]
  inner = zarr_shape.chunk_lengths(value, shard_shape)
  if any(whole % part for whole, part in zip(shard_shape, inner, strict=True)):
    value.fail(f"lengths that divide the zarr shard's {list(shard_shape)}")
  check(configuration["codecs"], inner)
  for codec in configuration["index_codecs"].elements():
    name_of(codec)
  location = configuration.get("index_location")
  if location is not None and location.text() not in ("start", "end"):
    location.fail("'start' or 'end'")
  return inner
