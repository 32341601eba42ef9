"""What each command does with its arguments."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from relayout.cli import progress, table


def _print_json(value: Any) -> None:
  _print(json.dumps(value, indent=1))


def _print(text: str) -> None:
  """Prints a result; that its reader, `head` say, has gone is no error."""
  try:
    print(text, flush=True)
  except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _inspect(parsed: argparse.Namespace) -> int:
  from relayout.cli import inspect_view
  from relayout.inspection import inspect

  found = inspect.inspect(parsed.path, step=parsed.step)
  if parsed.json:
    _print_json(inspect.to_json(found))
  else:
    _print(table.printable(inspect_view.render(found)))
  return 0


def _convert(parsed: argparse.Namespace) -> int:
  from relayout.cli import convert_view
  from relayout.convert.options import Options
  from relayout.convert.run import convert

  options = Options(
    to=parsed.to or "",
    scan_layers=parsed.scan_layers,
    model_name=parsed.model_name,
    layer_pattern=parsed.layer_pattern,
    scan_axis=parsed.scan_axis,
    source_scan_axis=parsed.source_scan_axis,
    params_only=parsed.params_only,
    keep=tuple(parsed.keep),
    drop=tuple(parsed.drop),
    dtypes=dict(parsed.dtype),
    adapter=parsed.adapter,
    optimizer_wrappers=parsed.optimizer_wrappers,
    rng=parsed.rng,
    like=parsed.like,
    compression=parsed.compression,
    chunk_bytes=parsed.chunk_bytes,
    chunk_like=parsed.chunk_like,
    memory_limit=parsed.memory_limit,
    step=parsed.step,
    step_numbering=parsed.step_numbering,
    lora_alpha=parsed.lora_alpha,
    force=parsed.force,
  )
  with progress.line() as show:
    report = convert(
      parsed.source,
      parsed.target,
      options,
      dry_run=parsed.dry_run,
      progress=show,
    )
  if parsed.json:
    _print_json(report.to_json())
  else:
    _print(table.printable(convert_view.render(report)))
  return 0


def _verify(parsed: argparse.Namespace) -> int:
  from relayout.verify import Declared, render_table, verify

  declared = Declared(
    model_name=parsed.model_name,
    layer_pattern=parsed.layer_pattern,
    a_scan_axis=parsed.source_scan_axis,
    b_scan_axis=parsed.target_scan_axis,
  )
  with progress.line() as show:
    report = verify(
      parsed.source,
      parsed.target,
      step=parsed.step,
      declared=declared,
      progress=show,
    )
  if parsed.json:
    _print_json(report.to_json())
  else:
    _print(table.printable(render_table(report)))
  return 0 if report.is_ok else 1


def _diff(parsed: argparse.Namespace) -> int:
  from relayout.diff import Declared, diff, render_table

  declared = Declared(
    model_name=parsed.model_name,
    layer_pattern=parsed.layer_pattern,
    a_scan_axis=parsed.a_scan_axis,
    b_scan_axis=parsed.b_scan_axis,
  )
  with progress.line() as show:
    report = diff(
      parsed.a,
      parsed.b,
      step=parsed.step,
      declared=declared,
      values=parsed.values == "hash",
      hashes=parsed.json,
      progress=show,
    )
  if parsed.json:
    _print_json(report.to_json())
  else:
    text = render_table(report, most_leaves=max(0, parsed.show))
    _print(table.printable(text))
  return 0 if report.is_equal else 1


type Command = Callable[[argparse.Namespace], int]

COMMANDS: Mapping[str, Command] = {
  "inspect": _inspect,
  "convert": _convert,
  "verify": _verify,
  "diff": _diff,
}
