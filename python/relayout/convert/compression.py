"""How the chunks of a target are compressed."""

import dataclasses
import re
from typing import Any, Literal

from relayout.errors import OptionError
from relayout.tree.array_spec import ArraySpec

DEFAULT_LEVEL = 3
"""Level of zstd where the source's codec is none that relayout writes."""

_MAX_LEVEL = 22


@dataclasses.dataclass(frozen=True, slots=True)
class Compression:
  """What is asked for.

  Attributes:
    kind: `keep` what an array has, `zstd`, or `none`.
    level: Of zstd.
  """

  kind: Literal["keep", "zstd", "none"] = "keep"
  level: int = DEFAULT_LEVEL

  def level_for(self, stored: ArraySpec) -> int | None:
    """Returns the level for a rewritten array; None: not compressed."""
    if self.kind == "none":
      return None
    return self.level if self.kind == "zstd" else stored_level(stored)

  def is_met_by(self, stored: ArraySpec) -> bool:
    """Whether the chunks of `stored` are compressed as asked for."""
    if self.kind == "keep":
      return True
    return codec_names(stored) == self._names() and (
      self.kind == "none" or stored_level(stored) == self.level
    )

  def _names(self) -> tuple[str, ...]:
    return () if self.kind == "none" else ("zstd",)


KEEP = Compression()


def parse_compression(text: str) -> Compression:
  """Parses `keep`, `none` or `zstd:N`.

  Raises:
    OptionError: If it is none of these, or the level is out of range.
  """
  if text in ("keep", "none"):
    return Compression("keep" if text == "keep" else "none")
  match = re.fullmatch(r"zstd:(-?\d{1,3})", text)
  if match and int(match[1]) <= _MAX_LEVEL:
    return Compression("zstd", int(match[1]))
  raise OptionError(
    f"--compression={text}: expected keep, none, or zstd:N with a level N up "
    f"to {_MAX_LEVEL}"
  )


def codec_names(spec: ArraySpec) -> tuple[str, ...]:
  """Returns what the bytes of a chunk pass through, in order of encoding.

  For a zarr shard, that of its inner chunks.
  """
  if spec.zarr_format == 2:
    chain = [*(spec.raw.get("filters") or []), spec.raw.get("compressor")]
    return tuple(codec["id"] for codec in chain if codec)
  return tuple(
    name
    for name in map(_name, _inner_codecs(spec.raw["codecs"]))
    if name not in ("bytes", "transpose")
  )


def stored_level(spec: ArraySpec) -> int | None:
  """Returns the level of zstd that an array has; None: not compressed.

  The default level for other codecs.
  """
  names = codec_names(spec)
  if not names or names == ("crc32c",):
    return None
  if "zstd" not in names:
    return DEFAULT_LEVEL
  if spec.zarr_format == 2:
    level = spec.raw["compressor"].get("level", DEFAULT_LEVEL)
  else:
    level = next(
      codec["configuration"].get("level", DEFAULT_LEVEL)
      if isinstance(codec, dict) and codec.get("configuration")
      else DEFAULT_LEVEL
      for codec in _inner_codecs(spec.raw["codecs"])
      if _name(codec) == "zstd"
    )
  return (
    level if isinstance(level, int) and level <= _MAX_LEVEL else DEFAULT_LEVEL
  )


def _inner_codecs(codecs: list[Any]) -> list[Any]:
  for codec in codecs:
    if _name(codec) == "sharding_indexed":
      return _inner_codecs(codec["configuration"]["codecs"])
  return codecs


def _name(codec: Any) -> str:
  return codec if isinstance(codec, str) else str(codec["name"])
