"""The errors that relayout raises on purpose.

Every message says what was found, where, and what to do about it.  Anything
else that escapes is a defect of relayout.
"""


class RelayoutError(Exception):
  """Base of all errors of this package."""


class CorruptCheckpointError(RelayoutError):
  """Stored bytes are damaged, incomplete or hostile; names the file."""


class LayoutError(RelayoutError):
  """A state does not have the structure that its layout calls for."""


class UnsupportedError(RelayoutError):
  """Well-formed input of a form that relayout does not handle."""


class NotACheckpointError(RelayoutError):
  """A path holds no checkpoint that can be recognised."""


class TargetExistsError(RelayoutError):
  """The target holds something that relayout will not overwrite."""


class OptionError(RelayoutError):
  """Options that contradict each other or the checkpoint."""
