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
  FILE = "file"
  UNREADABLE = "unreadable"
  UNACCOUNTED = "unaccounted"


class Way(enum.StrEnum):
  """How a leaf of the target holds values of the source."""

  MOVED = "moved"
  STACKED = "stacked"
  UNSTACKED = "unstacked"
  RESTACKED = "restacked"
  SET_ASIDE = "set_aside"
  RESTORED = "restored"
  """From what an earlier conversion had set aside."""


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
  """A target leaf that equals what it is made of, byte for byte.

  Attributes:
    way: How.
    sources: Labels of the source leaves, `<item>/<name>`; the layers of a stack
      in their order, or the stack that a layer is taken from.
    target: Label of the target leaf.
    num_bytes: Size of the target's values, bytes.
    cast: Both data types, where a cast was asked for; then the values are those
      of the source, rounded to the nearest, half to even. Else "".
  """

  way: Way
  sources: tuple[str, ...]
  target: str
  num_bytes: int
  cast: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Derived:
  """A target leaf whose value follows from the source by a rule.

  Attributes:
    sources: Labels of the source leaves that the rule reads.
    target: Label of the target leaf.
    rule: The rule, in words.
    source_value: What the rule gives for the source; None if it is no number.
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


type Account = Held | Derived | Dropped | Difference


def source_labels(account: Account) -> tuple[str, ...]:
  """Returns the labels of the source leaves that `account` is about."""
  match account:
    case Held() | Derived():
      return account.sources
    case Dropped(source):
      return (source,)
    case Difference():
      return (account.leaf, *account.accounts_for)


def target_labels(account: Account) -> tuple[str, ...]:
  """Returns the labels of the target leaves that `account` is about."""
  match account:
    case Held() | Derived():
      return (account.target,)
    case Dropped():
      return ()
    case Difference():
      return (account.leaf, *account.accounts_for)
