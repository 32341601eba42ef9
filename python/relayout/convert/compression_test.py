"""How an array is compressed, and what is asked for."""

import pytest

from relayout.convert.compression import (
  DEFAULT_LEVEL,
  KEEP,
  Compression,
  codec_names,
  parse_compression,
  stored_level,
)
from relayout.errors import OptionError
from tests.support import specs

_CRC = {"name": "crc32c"}
_GZIP = {"name": "gzip", "configuration": {"level": 1}}


def _v2(compressor, filters=None):
  return specs.spec_of_v2((4,), (4,), compressor=compressor, filters=filters)


def _v3(*codecs, inner=None):
  chain = [specs.BYTES, *codecs]
  if inner:
    chain = [specs.sharding(inner, chain)]
  return specs.spec_of_v3((4,), (4,), inner, codecs=chain)


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("keep", KEEP),
    ("none", Compression("none")),
    ("zstd:1", Compression("zstd", 1)),
    ("zstd:22", Compression("zstd", 22)),
    ("zstd:-5", Compression("zstd", -5)),
  ],
)
def test_what_can_be_asked_for(text, expected):
  assert parse_compression(text) == expected


@pytest.mark.parametrize(
  "text",
  ["", "zstd", "zstd:", "zstd:23", "zstd:1.5", "gzip", "None", "zstd:3 "],
)
def test_anything_else_is_refused(text):
  with pytest.raises(OptionError, match="expected keep, none, or zstd:N"):
    parse_compression(text)


@pytest.mark.parametrize(
  ("spec", "names", "level"),
  [
    (_v2(None), (), None),
    (_v2({"id": "zstd", "level": 7}), ("zstd",), 7),
    (_v2({"id": "zstd"}), ("zstd",), DEFAULT_LEVEL),
    (_v2({"id": "zstd", "level": 99}), ("zstd",), DEFAULT_LEVEL),
    (_v2({"id": "blosc", "cname": "lz4"}), ("blosc",), DEFAULT_LEVEL),
    (_v3(), (), None),
    (_v3(_CRC), ("crc32c",), None),
    (_v3(specs.ZSTD), ("zstd",), 1),
    (_v3(specs.ZSTD, _CRC), ("zstd", "crc32c"), 1),
    (_v3(_GZIP), ("gzip",), DEFAULT_LEVEL),
    (_v3(specs.ZSTD, inner=(2,)), ("zstd",), 1),
    (_v3(inner=(2,)), (), None),
  ],
)
def test_codecs_and_level_of_an_array(spec, names, level):
  assert codec_names(spec) == names
  assert stored_level(spec) == level
  assert KEEP.is_met_by(spec)
  assert KEEP.level_for(spec) == level
  assert Compression("none").is_met_by(spec) is (names == ())
  assert Compression("zstd", 1).is_met_by(spec) is (
    names == ("zstd",) and level == 1
  )


def test_what_is_asked_for_decides_the_level():
  spec = _v2({"id": "zstd", "level": 7})
  assert Compression("none").level_for(spec) is None
  assert Compression("zstd", 2).level_for(spec) == 2
