"""Rng state for a Tunix trainer.

Its manager wants every rng leaf of the live model, with the key width of the
program: threefry for SFT, DPO and RL, where MaxText's pre-training has
unsafe_rbg.  Where keys can't stay, new ones are derived from them, so that
each stream of each layer has its own.
"""

import hashlib
import math
import struct
from collections.abc import Iterator, Mapping

from relayout.convert.form import Form
from relayout.convert.plan import Derived
from relayout.layouts import rng
from relayout.layouts.state import Role, State, StateKey, StoredLeaf
from relayout.tree.key_path import KeyPath

THREEFRY_IMPL = "threefry2x32"

_WORDS = 2
_FLAT = "flat"
_ROOT_RNGS = ("decoder", "rngs")

type Derivation = tuple[StateKey, tuple[int, ...], Derived]
"""What a derived leaf is, its shape, and its values."""


def unfit(
  state: State, before: Form, after: Form, *, is_tunix: bool
) -> Mapping[StateKey, str]:
  """Returns the rng leaves that a Tunix trainer can't take, with the reason.

  Args:
    state: Of the source.
    before: Its form.
    after: Form of the target.
    is_tunix: Whether the source is a Tunix trainer's; its keys are fit.
  """
  leaves = dict(state.with_role(Role.RNG))
  if before.mode != after.mode:
    reason = (
      f"rng state of a model that is {before.mode} has no counterpart in one "
      f"that is {after.mode}"
    )
    return dict.fromkeys(leaves, reason)
  others = _other_impls(leaves)
  if is_tunix or not others:
    return {}
  reason = (
    f"rng keys are {', '.join(others)}, Tunix's trainers have {THREEFRY_IMPL}: "
    "such are derived from them"
  )
  return dict.fromkeys(leaves, reason)


def _other_impls(leaves: Mapping[StateKey, StoredLeaf]) -> list[str]:
  found = {rng.key_impl(leaf) for key, leaf in leaves.items() if _is_key(key)}
  return sorted(found - {THREEFRY_IMPL})


def derive(state: State, before: Form, after: Form) -> Iterator[Derivation]:
  """Yields the rng leaves that take the place of those that are unfit.

  Nothing where a change of the scan mode makes it unknown what the trainer
  has; its manager then says which leaves it misses.
  """
  leaves = dict(state.with_role(Role.RNG))
  if before.mode == after.mode:
    if _other_impls(leaves):
      yield from (_threefry(key, stored) for key, stored in leaves.items())
  elif after.mode == "unscanned":
    yield from _unscanned(leaves, before)
  elif after.grouping and after.grouping.pattern == _FLAT:
    yield from _scanned(leaves, after)


def derive_like(
  state: State, wanted: Mapping[StateKey, tuple[int, ...]]
) -> Iterator[Derivation]:
  """Yields rng leaves of given shapes, each key its own.

  Args:
    state: Of the source; its first stream gives the randomness.
    wanted: Shapes of keys and counts, by what they are.
  """
  streams = {
    key.path: stored
    for key, stored in state.with_role(Role.RNG)
    if _is_key(key)
  }
  if not streams:
    return
  stored = streams[min(streams)]
  words = next(_words(stored))
  for key, shape in wanted.items():
    rule = "derived, each its own"
    num = math.prod(shape)
    if not _is_key(key):
      rule, values = "no draw yet", (0,) * num
    else:
      values = tuple(
        word
        for i in range(num // shape[-1])
        for word in _fold_in(words, key.path, i, shape[-1])
      )
    yield key, shape, Derived(rule, None, (stored,), values=values)


def _is_key(key: StateKey) -> bool:
  return key.path[-1] == "key"


def _threefry(key: StateKey, stored: StoredLeaf) -> Derivation:
  """The first words of each wider key are a key of their own."""
  assert stored.leaf.spec is not None
  if not _is_key(key):
    values = tuple(int(n) for n in stored.item.read_small(stored.leaf))
    origin = Derived("draws so far", None, (stored,), values=values)
    return key, stored.leaf.spec.shape, origin
  keys = [*_words(stored)]
  shape = (*stored.leaf.spec.shape[:-1], _WORDS)
  values = tuple(word for words in keys for word in words[:_WORDS])
  rule = f"the first {_WORDS} words of each {rng.key_impl(stored)} key"
  return key, shape, Derived(rule, None, (stored,), values=values)


def _words(stored: StoredLeaf) -> Iterator[tuple[int, ...]]:
  """Yields each key of an array of keys."""
  spec = stored.leaf.spec
  assert spec is not None
  width = spec.shape[-1]
  values = [int(value) for value in stored.item.read_small(stored.leaf)]
  for start in range(0, len(values), width):
    yield tuple(values[start : start + width])


def _unscanned(
  leaves: Mapping[StateKey, StoredLeaf], before: Form
) -> Iterator[Derivation]:
  """All modules of an unscanned model share the streams of the model.

  They are stored once, under the first module that has them.
  """
  roots, places = [], []
  for key in leaves:
    container = key.path[:-2]
    found = before.grouping and before.grouping.split_scanned(container)
    if found:
      places.append((*found.group.members[0], *found.suffix))
    else:
      roots.append(container)
      places.append(container)
  if not roots:
    return
  root, place = min(roots), min(places)
  for key, stored in leaves.items():
    if key.path[:-2] == root:
      moved = StateKey(Role.RNG, (*place, *key.path[-2:]))
      yield _one(moved, stored)


def _one(key: StateKey, stored: StoredLeaf) -> Derivation:
  """Returns one stream's key or count, which is that of the whole model."""
  rule = "that of the whole model"
  if _is_key(key):
    words = next(_words(stored))[:_WORDS]
    return key, (len(words),), Derived(rule, None, (stored,), values=words)
  count = int(stored.item.read_small(stored.leaf)[0])
  return key, (), Derived(rule, None, (stored,), values=(count,))


def _scanned(
  leaves: Mapping[StateKey, StoredLeaf], after: Form
) -> Iterator[Derivation]:
  """The streams of a flat stack, one for each layer, and of the model."""
  for key, stored in leaves.items():
    found = after.grouping and after.grouping.split_unscanned(key.path)
    if not found:
      continue
    stream = key.path[-2:]
    yield _one(StateKey(Role.RNG, (*_ROOT_RNGS, *stream)), stored)
    path = (*found.group.scanned, *found.suffix)
    yield _of_layers(path, stored, len(found.group.members))


def _of_layers(path: KeyPath, stored: StoredLeaf, num: int) -> Derivation:
  key = StateKey(Role.RNG, path)
  rule = f"derived for each of {num} layers"
  if not _is_key(key):
    return key, (num,), Derived(rule, None, (stored,), values=(0,) * num)
  words = next(_words(stored))
  values = tuple(
    word
    for layer in range(num)
    for word in _fold_in(words, path, layer, _WORDS)
  )
  return key, (num, _WORDS), Derived(rule, None, (stored,), values=values)


def _fold_in(
  words: tuple[int, ...], path: KeyPath, layer: int, num: int
) -> list[int]:
  """Returns a key of `num` words that differs for each stream and layer."""
  data = struct.pack(f">{len(words)}I", *words)
  data += "\0".join((*path, str(layer))).encode()
  digest = hashlib.sha256(data).digest()
  return list(struct.unpack(f">{num}I", digest[: 4 * num]))
