"""What the command line accepts."""

import argparse
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
  return parser.parse_args(list(argv[1:]))


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


def _add_step(parser: argparse.ArgumentParser, text: str) -> None:
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
    "Convert a checkpoint without copying its data. The source is never "
    "touched; the target appears whole or not at all.",
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
    "--to", required=True, choices=("maxtext",), help="the target's layout"
  )
  _add_model_options(parser)
  _add_selection(parser)
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
  parser.add_argument(
    "--scan_layers",
    choices=("keep", "true", "false"),
    default="keep",
    help="whether the target's layers are scanned (default: keep)",
  )
  parser.add_argument(
    "--model_name",
    default="",
    metavar="NAME",
    help="MaxText model name, which tells how layers are grouped",
  )
  parser.add_argument(
    "--layer_pattern",
    choices=("flat",),
    default="",
    help="flat: all layers form one stack",
  )
  parser.add_argument(
    "--lora_alpha",
    type=float,
    metavar="ALPHA",
    help="alpha of the adapters, which Tunix records nowhere",
  )


def _add_selection(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--params_only", action="store_true", help="convert the weights alone"
  )
  _add_step(parser, "convert this step of a run (default: all)")
  parser.add_argument(
    "--step_numbering",
    choices=("maxtext", "keep"),
    default="maxtext",
    help="maxtext: N updates become directory N-1; keep: as in the source "
    "(default: maxtext)",
  )


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
