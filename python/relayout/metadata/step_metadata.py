"""`_CHECKPOINT_METADATA`: what a step says of itself as a whole."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from relayout.metadata import safe_json
from relayout.metadata.json_value import JsonValue

FILE_NAME = "_CHECKPOINT_METADATA"

PYTREE_HANDLER = (
  "orbax.checkpoint.experimental.v1._src.handlers.pytree_handler.PyTreeHandler"
)
"""Handler that MaxText 0.2.5 records for the item `items`."""

PYTREE_CHECKPOINT_HANDLER = (
  "orbax.checkpoint._src.handlers.pytree_checkpoint_handler"
  ".PyTreeCheckpointHandler"
)
"""Handler of Orbax v0, which Tunix 0.1.7 records for its items."""

_MAX_NUM_BYTES = 1 << 24
_MAX_TIMESTAMP = (1 << 63) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class StepMetadata:
  """All of a `_CHECKPOINT_METADATA` file.

  Attributes:
    item_handlers: Handler of each item by the item's name; a string if the
      directory is a single item; None: not said.
    metrics: Values by name that the run recorded.
    performance_metrics: Values by name that Orbax measured.
    init_timestamp_nsecs: When the save began, ns since 1970; None: not said.
    commit_timestamp_nsecs: When it was complete; None: never, or not said.
    custom_metadata: What the program put there: `scan_layers`, `lora`,
      `global_step`, `role`.
    extra: Members that relayout doesn't know.
  """

  item_handlers: Mapping[str, Any] | str | None = None
  metrics: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  performance_metrics: Mapping[str, Any] = dataclasses.field(
    default_factory=dict
  )
  init_timestamp_nsecs: int | None = None
  commit_timestamp_nsecs: int | None = None
  custom_metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def read_step_metadata(step: pathlib.Path) -> StepMetadata | None:
  """Returns what the step in directory `step` says; None if it says nothing.

  Raises:
    CorruptCheckpointError: If the file is damaged.
  """
  path = step / FILE_NAME
  try:
    data = safe_json.read_bytes(path, max_num_bytes=_MAX_NUM_BYTES)
  except FileNotFoundError:
    return None
  return parse_step_metadata(data, str(path))


def parse_step_metadata(data: bytes, source: str) -> StepMetadata:
  """Returns what the bytes of a `_CHECKPOINT_METADATA` file say.

  Raises:
    CorruptCheckpointError: If they are not what Orbax writes.
  """
  root = JsonValue(safe_json.loads(data, source), source)
  known = {field.name for field in dataclasses.fields(StepMetadata)}
  return StepMetadata(
    item_handlers=_parse_handlers(root),
    metrics=_parse_object(root, "metrics"),
    performance_metrics=_parse_object(root, "performance_metrics"),
    init_timestamp_nsecs=_parse_time(root, "init_timestamp_nsecs"),
    commit_timestamp_nsecs=_parse_time(root, "commit_timestamp_nsecs"),
    custom_metadata=_parse_object(root, "custom_metadata"),
    extra={k: v for k, v in root.members().items() if k not in known},
  )


def step_metadata_bytes(metadata: StepMetadata) -> bytes:
  """Returns the bytes of the file, laid out as Orbax does."""
  handlers = metadata.item_handlers
  value = {
    "item_handlers": dict(handlers)
    if isinstance(handlers, Mapping)
    else handlers,
    "metrics": dict(metadata.metrics),
    "performance_metrics": dict(metadata.performance_metrics),
    "init_timestamp_nsecs": metadata.init_timestamp_nsecs,
    "commit_timestamp_nsecs": metadata.commit_timestamp_nsecs,
    "custom_metadata": dict(metadata.custom_metadata),
  }
  return json.dumps(value | dict(metadata.extra)).encode("utf-8")


def _parse_handlers(root: JsonValue) -> Mapping[str, Any] | str | None:
  value = root.get("item_handlers")
  if value is None:
    return None
  if isinstance(value.value, str):
    return value.text()
  return value.members()


def _parse_object(root: JsonValue, key: str) -> Mapping[str, Any]:
  value = root.get(key)
  return {} if value is None else value.members()


def _parse_time(root: JsonValue, key: str) -> int | None:
  value = root.get(key)
  if value is None:
    return None
  return value.integer(minimum=0, maximum=_MAX_TIMESTAMP)
