"""Where the golden checkpoints are, and what they hold."""

import hashlib
import json
import shutil
from pathlib import Path

_ROOT = Path(__file__).parent.parent / "golden"

TUNIX = (
  "distill_scan_tmid",
  "dpo_scan",
  "dpo_scan_ga2",
  "lora_sft_scan_r2_dtf32",
  "lora_sft_unscan",
  "qlora_int8_fullstate_unscan",
  "qlora_int8_sft_unscan",
  "rl_scan",
  "rl_unscan",
  "sft_scan",
  "sft_scan_noclip",
  "sft_scan_stock0",
  "sft_scan_tgit",
  "sft_unscan",
  "sft_unscan_gemma3",
  "sft_unscan_qwen3moe",
  "sft_unscan_sharded",
)
"""Every golden checkpoint that Tunix wrote."""

MAXTEXT = (
  "pretrain_scan",
  "pretrain_scan_gemma3",
  "pretrain_scan_sharded",
  "pretrain_unscan",
  "pretrain_unscan_gemma3",
)
"""Every golden checkpoint that MaxText wrote."""

ALL = TUNIX + MAXTEXT


def checkpoints(name: str) -> Path:
  """Returns the checkpoints directory of a golden checkpoint: read only."""
  return _ROOT / name / "checkpoints"


def copy_checkpoints(name: str, target: Path) -> Path:
  """Copies a golden checkpoints directory, to be changed; returns the copy."""
  copy = target / name / "checkpoints"
  shutil.copytree(checkpoints(name), copy)
  for path in (copy, *copy.rglob("*")):
    path.chmod(0o755 if path.is_dir() else 0o644)
  return copy


def digests(name: str) -> dict[str, str]:
  """Returns SHA-256 by `<step>/<item>/<array>`, steps below `checkpoints`."""
  content = json.loads((_ROOT / name / "digests.json").read_text())
  return {
    key.removeprefix("checkpoints/"): value for key, value in content.items()
  }


def tree_digest(root: Path) -> dict[str, tuple[int, int, int, str]]:
  """Returns (inode, size, mtime, SHA-256) of every file below `root`."""
  return {
    str(path.relative_to(root)): (
      path.stat().st_ino,
      path.stat().st_size,
      path.stat().st_mtime_ns,
      hashlib.sha256(path.read_bytes()).hexdigest(),
    )
    for path in sorted(root.rglob("*"))
    if path.is_file()
  }
