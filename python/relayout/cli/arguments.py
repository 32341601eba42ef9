"""What the command line accepts."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from absl.flags import argparse_flags

import relayout


def parse(argv: Sequence[str]) -> argparse.Namespace:
  """Parses a command line, the program's name first.

  Exits with 2 and a message on wrong usage, as argparse does.
  """
  # absl ships no types.
  make_parser: Callable[..., argparse.ArgumentParser] = (
    argparse_flags.ArgumentParser
  )
  parser = make_parser(
    prog="relayout",
    description="Hands a checkpoint from one JAX trainer to the next.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "--version", action="version", version=f"relayout {relayout.__version__}"
  )
  commands = parser.add_subparsers(dest="command", required=True)
  _add_inspect(commands)
  _add_convert(commands)
  _add_verify(commands)
  _add_diff(commands)
  parsed = parser.parse_args(list(argv[1:]))
  if parsed.command == "convert" and not (parsed.to or parsed.like):
    parser.error("convert: --to is needed, unless there is --like")
  return parsed


def _path(text: str) -> Path:
  """Parses a path; an empty one, of an unset variable say, is none."""
  if not text:
    raise argparse.ArgumentTypeError("the path is empty")
  if "://" in text:
    raise argparse.ArgumentTypeError(
      f"{text}: only directories of this machine; mount the bucket, or copy"
    )
  return Path(text)


type _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _add_command(
  commands: _Commands, name: str, text: str
) -> argparse.ArgumentParser:
  parser = commands.add_parser(
    name, help=text, description=text, allow_abbrev=False
  )
  parser.add_argument(
    "--json", action="store_true", help="print JSON instead of a table"
  )
  return parser


def _add_step(parser: argparse._ActionsContainer, text: str) -> None:
  parser.add_argument("--step", type=int, metavar="N", help=text)


def _add_inspect(commands: _Commands) -> None:
  parser = _add_command(commands, "inspect", "Say what a checkpoint is.")
  parser.add_argument(
    "path",
    type=_path,
    metavar="PATH",
    help="a run's checkpoint directory, a step, or an item",
  )
  _add_step(parser, "show this step of a run (default: the newest)")


def _add_convert(commands: _Commands) -> None:
  parser = _add_command(
    commands,
    "convert",
    "Convert a checkpoint to another layout or form, without copying its data "
    "where that is possible. The source is never touched; the target appears "
    "whole or not at all.",
  )
  parser.add_argument(
    "source",
    type=_path,
    metavar="SOURCE",
    help="a run's checkpoint directory (all its steps), a step, or an item "
    "(`model_params`: weights only)",
  )
  parser.add_argument(
    "target",
    type=_path,
    metavar="TARGET",
    help="a checkpoints directory: MaxText reads "
    "<base_output_directory>/<run_name>/checkpoints",
  )
  parser.add_argument(
    "--to",
    choices=("maxtext", "tunix"),
    help="the target's layout; needed unless there is --like",
  )
  parser.add_argument(
    "--like",
    type=_path,
    metavar="REF",
    help="make the target look like this checkpoint: names, stacking, data "
    "types, side files",
  )
  _add_model_options(parser)
  _add_tunix_options(parser)
  _add_selection(parser)
  _add_data_options(parser)
  parser.add_argument(
    "--dry_run", action="store_true", help="plan and check, write nothing"
  )
  parser.add_argument(
    "--force",
    action="store_true",
    help="convert although the gradients of an unfinished accumulation are "
    "lost; never overwrites a target",
  )


def _add_model_options(parser: argparse.ArgumentParser) -> None:
  group = parser.add_argument_group("layers")
  group.add_argument(
    "--scan_layers",
    choices=("keep", "true", "false"),
    default="keep",
    help="whether the target's layers are scanned (default: keep)",
  )
  group.add_argument(
    "--model_name",
    default="",
    metavar="NAME",
    help="MaxText model name, which tells how layers are grouped",
  )
  group.add_argument(
    "--layer_pattern",
    default="",
    metavar="PATTERN",
    help="the same in a word: flat (all layers form one stack), cycle:N, or "
    "one of MaxText's decoder blocks, such as gemma3",
  )
  group.add_argument(
    "--scan_axis",
    type=int,
    metavar="AXIS",
    help="layer axis of a scanned target (default: the source's, or 1)",
  )
  group.add_argument(
    "--source_scan_axis",
    type=int,
    metavar="AXIS",
    help="layer axis of a scanned source (default: as recorded, or 1)",
  )


def _add_tunix_options(parser: argparse.ArgumentParser) -> None:
  group = parser.add_argument_group("with --to=tunix")
  group.add_argument(
    "--adapter",
    metavar="LEVEL",
    help="level around the weights: base for DPO and RL (default: as the "
    "source had it, or none)",
  )
  group.add_argument(
    "--optimizer_wrappers",
    metavar="NAMES",
    help="what the trainer wraps around its optimizer, outermost first: "
    "clip, inject_hyperparams, multi_steps, or none (default: as the source "
    "had it, or clip)",
  )
  group.add_argument(
    "--rng",
    choices=("derive", "keep"),
    default="derive",
    help="derive: keys of the kind that SFT, DPO and RL have; keep: those of "
    "pre-training, for JAX_DEFAULT_PRNG_IMPL=unsafe_rbg (default: derive)",
  )


def _add_selection(parser: argparse.ArgumentParser) -> None:
  group = parser.add_argument_group("what is converted")
  group.add_argument(
    "--params_only", action="store_true", help="convert the weights alone"
  )
  for name, text in (
    ("keep", "convert only leaves whose path matches; may be repeated"),
    ("drop", "leave out leaves whose path matches; may be repeated"),
  ):
    group.add_argument(
      f"--{name}", action="append", default=[], metavar="PATTERN", help=text
    )
  _add_step(group, "convert this step of a run (default: all)")
  group.add_argument(
    "--step_numbering",
    choices=("target", "keep"),
    default="target",
    help="target: as the target's trainer numbers its steps (MaxText: N "
    "updates are directory N-1; Tunix: N); keep: as in the source (default: "
    "target)",
  )
  group.add_argument(
    "--lora_alpha",
    type=float,
    metavar="ALPHA",
    help="alpha of the adapters, which Tunix records nowhere",
  )


def _add_data_options(parser: argparse.ArgumentParser) -> None:
  group = parser.add_argument_group("how data is stored")
  group.add_argument(
    "--dtype",
    action="append",
    default=[],
    type=_dtype,
    metavar="[weights=|moments=]TYPE",
    help="floating-point type of the weights, or of what is named",
  )
  group.add_argument(
    "--compression",
    default="keep",
    metavar="keep|zstd:N|none",
    help="how chunks are compressed (default: keep)",
  )
  group.add_argument(
    "--chunk_bytes",
    type=_num_bytes,
    metavar="BYTES",
    help="most bytes of values in a chunk",
  )
  group.add_argument(
    "--chunk_like",
    choices=("layer",),
    default="",
    help="layer: chunks of a scanned target hold one layer each, so that "
    "unstacking it is free",
  )
  group.add_argument(
    "--memory_limit",
    type=_num_bytes,
    default=1 << 30,
    metavar="BYTES",
    help="most memory for data that is rewritten, such as 256MiB (default: "
    "1GiB)",
  )


_FLOATS = ("float64", "float32", "float16", "bfloat16")


def _dtype(text: str) -> tuple[str, str]:
  """Parses a data type, of the weights unless it says of what."""
  kind, equals, name = text.rpartition("=")
  kind = kind if equals else "weights"
  if kind not in ("weights", "moments") or name not in _FLOATS:
    raise argparse.ArgumentTypeError(
      f"{text}: expected one of {', '.join(_FLOATS)}, or weights=TYPE or "
      "moments=TYPE"
    )
  return kind, name


_UNITS = {"": 1, "b": 1} | {
  f"{prefix}{suffix}": 1 << (10 * power)
  for power, prefix in enumerate("kmgt", start=1)
  for suffix in ("", "b", "ib")
}


def _num_bytes(text: str) -> int:
  """Parses a number of bytes; units are powers of 1024."""
  match = re.fullmatch(r"(\d{1,15})\s*([a-zA-Z]*)", text)
  if not match or match[2].lower() not in _UNITS:
    raise argparse.ArgumentTypeError(
      f"{text}: expected a number of bytes, such as 268435456 or 256MiB"
    )
  return int(match[1]) * _UNITS[match[2].lower()]


def _add_verify(commands: _Commands) -> None:
  parser = _add_command(
    commands,
    "verify",
    "Compare a converted checkpoint with its source, leaf by leaf and byte "
    "for byte. Exit code 0: equal, 1: differences, 2: unusable input.",
  )
  parser.add_argument("source", type=_path, metavar="SOURCE")
  parser.add_argument("target", type=_path, metavar="TARGET")
  _add_step(parser, "compare this step of the source (default: all)")
  _add_grouping(parser)
  for side in ("source", "target"):
    _add_scan_axis(parser, f"{side}_scan_axis", side)


def _add_diff(commands: _Commands) -> None:
  parser = _add_command(
    commands,
    "diff",
    "Say in what two checkpoints differ: leaves, shapes, data types, values. "
    "Each may be in any layout, its layers scanned or not. Exit code 0: equal, "
    "1: differences, 2: unusable input.",
  )
  for name in ("a", "b"):
    parser.add_argument(
      name,
      type=_path,
      metavar=name.upper(),
      help="a run's checkpoint directory, a step, or an item",
    )
  _add_step(parser, "compare this step of A (default: all)")
  _add_grouping(parser)
  for name in ("a", "b"):
    _add_scan_axis(parser, f"{name}_scan_axis", name.upper())
  parser.add_argument(
    "--values",
    choices=("hash", "none"),
    default="hash",
    help="hash: compare values, with --json also print their hashes; none: "
    "names, shapes and data types only (default: hash)",
  )
  parser.add_argument(
    "--show",
    type=int,
    default=20,
    metavar="N",
    help="leaves that differ to show of a step (default: 20)",
  )


def _add_grouping(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--model_name",
    default="",
    metavar="NAME",
    help="MaxText model name, which tells how layers are grouped, where only "
    "one side is scanned (default: as recorded)",
  )
  parser.add_argument(
    "--layer_pattern",
    default="",
    metavar="PATTERN",
    help="the same in a word, such as flat",
  )


def _add_scan_axis(
  parser: argparse.ArgumentParser, name: str, side: str
) -> None:
  parser.add_argument(
    f"--{name}",
    type=int,
    choices=(0, 1, 2),
    help=f"where scanned layers of {side} have their axis (default: as "
    "recorded, or 1)",
  )
