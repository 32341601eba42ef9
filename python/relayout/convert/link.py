"""Gives a file a second name, without copying where the file system can."""

import dataclasses
import enum
import errno
import fcntl
import os
import shutil
from pathlib import Path

from relayout.convert import staging

# ioctl number of FICLONE, Linux `include/uapi/linux/fs.h`.
_FICLONE = 0x40049409

_LINK_REFUSED = frozenset(
  {
    errno.EXDEV,
    errno.EPERM,
    errno.EACCES,
    errno.EMLINK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
  }
)


class Method(enum.Enum):
  """How a file came into the target."""

  HARD_LINK = "hard link"
  REFLINK = "reflink"
  COPY = "copy"


@dataclasses.dataclass(frozen=True, slots=True)
class Transfer:
  """One file of the target.

  Attributes:
    method: How it was made.
    num_bytes: Size of the file, bytes.
    reason: Why it is no hard link; "" if it is.
  """

  method: Method
  num_bytes: int
  reason: str = ""


def transfer(source: Path, target: Path) -> Transfer:
  """Makes `target` hold the bytes of `source`, which is left as it is.

  A hard link if the file system allows it, else a reflink, else a copy.  The
  caller syncs the target: even linked bytes may not have reached the disk yet.

  Raises:
    OSError: If the file can't be read or written at all.
  """
  # A link to a symbolic link would lead back into the source.
  source = source.resolve() if source.is_symlink() else source
  try:
    os.link(source, target)
  except OSError as error:
    if error.errno not in _LINK_REFUSED:
      raise
    return _duplicate(source, target, os.strerror(error.errno))
  return Transfer(Method.HARD_LINK, target.stat().st_size)


def _duplicate(source: Path, target: Path, reason: str) -> Transfer:
  with source.open("rb") as reader, target.open("xb") as writer:
    method = Method.REFLINK
    try:
      fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except OSError:
      method = Method.COPY
      with staging.naming(target):
        shutil.copyfileobj(reader, writer, 1 << 24)
        writer.flush()
  return Transfer(method, target.stat().st_size, reason)
