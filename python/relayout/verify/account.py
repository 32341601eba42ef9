"""The accounts that verifying gives of leaves: plain data."""

import dataclasses
import enum


class Kind(enum.StrEnum):
  """What a difference is about."""

  MISSING = "missing"
  EXTRA = "extra"
  SHAPE = "shape"
  DTYPE = "dtype"
  VALUE = "value"
  ORDER = "order"
  STORE = "store"
  METADATA = "metadata"
  LAYOUT = "layout"
  STEP = "step"
  UNREADABLE = "unreadable"
  UNACCOUNTED = "unaccounted"


@dataclasses.dataclass(frozen=True, slots=True)
class Moved:
  """A target leaf that equals one source leaf, byte for byte.

  Attributes:
    source: Label of the source leaf, `<item>/<name>`.
    target: Label of the target leaf.
    num_bytes: Size of the values, bytes.
  """

  source: str
  target: str
  num_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Stacked:
  """A target leaf that equals the NumPy stack of source leaves.

  Attributes:
    sources: Labels of the layers, layer 0 first.
    target: Label of the target leaf.
    axis: Axis of the layers in the target.
    num_bytes: Size of the target's values, bytes.
  """

  sources: tuple[str, ...]
  target: str
  axis: int
  num_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Derived:
  """A target leaf whose value follows from the source by a rule.

  Attributes:
    sources: Labels of the source leaves that the rule reads.
    target: Label of the target leaf.
    rule: The rule, in words.
    source_value: What the rule gives for the source.
    target_value: What the target holds; the same.
  """

  sources: tuple[str, ...]
  target: str
  rule: str
  source_value: int | None
  target_value: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
  """A source leaf that the target rightly does not have.

  Attributes:
    source: Label of the source leaf.
    reason: Why nothing is wrong.
    num_bytes: Size of the values, bytes.
  """

  source: str
  reason: str
  num_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
  """Something that the source does not explain, or that the target lacks.

  Attributes:
    kind: What it is about.
    leaf: Label of the leaf, or the file or step that differs.
    detail: What was expected and what was found.
    accounts_for: Labels of all the leaves that this is about.
  """

  kind: Kind
  leaf: str
  detail: str
  accounts_for: tuple[str, ...] = ()

  def __str__(self) -> str:
    return f"{self.leaf}: {self.detail}"


type Account = Moved | Stacked | Derived | Dropped | Difference


def labels(account: Account) -> tuple[str, ...]:
  """Returns the labels of all leaves that `account` is about."""
  match account:
    case Moved(source, target):
      return (source, target)
    case Stacked(sources, target) | Derived(sources, target):
      return (*sources, target)
    case Dropped(source):
      return (source,)
    case Difference():
      return (account.leaf, *account.accounts_for)
