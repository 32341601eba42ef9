"""An existing checkpoint that a target shall look like (`--like`)."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from relayout.convert import forms
from relayout.convert.options import Options
from relayout.convert.plan import ItemPlan, TargetLeaf
from relayout.convert.source import Source, read_step
from relayout.errors import LayoutError, OptionError
from relayout.layouts.registry import LAYOUTS
from relayout.layouts.state import Role, StateKey
from relayout.layouts.wrappers import Wrappers
from relayout.metadata.checkpoint import find_checkpoint
from relayout.metadata.item import ItemLeaf
from relayout.tree.key_path import KeyKind


@dataclasses.dataclass(frozen=True)
class Reference:
  """The checkpoint, read.

  Attributes:
    source: What it holds.
    leaves: Its leaves, by item and name.
  """

  source: Source
  leaves: Mapping[str, Mapping[str, ItemLeaf]]

  def leaf(self, item: str, name: str) -> ItemLeaf | None:
    """Returns the leaf of that name, or None."""
    return self.leaves.get(item, {}).get(name)

  def rng_shapes(self) -> dict[StateKey, tuple[int, ...]]:
    """Returns the shapes of its rng leaves."""
    return {
      key: stored.leaf.spec.shape
      for key, stored in self.source.state.with_role(Role.RNG)
      if stored.leaf.spec is not None
    }


def read_reference(path: Path) -> Reference:
  """Reads the newest step at `path`.

  Raises:
    OptionError: If it is a single item.
    RelayoutError: If it is no checkpoint, or damaged.
  """
  found = find_checkpoint(path)
  if found.item is not None:
    raise OptionError(f"--like={path}: an item; name the step that holds it")
  source = read_step(found.steps[-1], params_only=False)
  names = LAYOUTS[source.layout].items
  return Reference(
    source=source,
    leaves={
      item.name: {leaf.name: leaf for leaf in item.leaves}
      for item in source.items
      if item.name in names
    },
  )


def resolve(options: Options, reference: Reference) -> Options:
  """Returns `options` with what they leave open taken from a reference.

  Raises:
    OptionError: If one contradicts the reference.
  """
  found = _taken_from(reference, options)
  for name, value in found.items():
    given = getattr(options, name)
    if given not in (_OPEN.get(name), value):
      raise OptionError(
        f"--{name}={given} contradicts --like={options.like}, which has {value}"
      )
  return dataclasses.replace(options, **found)


_OPEN = {"to": "", "scan_layers": "keep", "params_only": False}


def _taken_from(reference: Reference, options: Options) -> dict[str, Any]:
  source = reference.source
  mode = forms.mode_of(source)
  found: dict[str, Any] = {"to": source.layout}
  if mode != "unknown":
    found["scan_layers"] = "true" if mode == "scanned" else "false"
  if mode == "scanned":
    found["scan_axis"] = forms.scan_axis(source, options.scan_axis)
  if source.layout == "tunix":
    found["adapter"] = source.state.adapter
    wrappers = Wrappers(source.state.wrappers)
    if source.state.optimizer is not None:
      found["optimizer_wrappers"] = str(wrappers)
  if source.state.optimizer is None:
    found["params_only"] = True
  recorded = forms.recorded_pattern(source)
  if recorded and not options.model_name and not options.layer_pattern:
    found["layer_pattern"] = recorded
  return found


def like(item: ItemPlan, reference: Reference) -> ItemPlan:
  """Returns an item in the order of a reference, with its shardings.

  Raises:
    LayoutError: If the two differ in structure; lists every difference.
  """
  known = reference.leaves.get(item.name, {})
  by_name = {leaf.name: leaf for leaf in item.leaves}
  differences = [*_differences(by_name, known)]
  if differences:
    raise LayoutError(
      f"{item.name} can't be made like {reference.source.path}: "
      f"{len(differences)} differences\n  " + "\n  ".join(differences)
    )
  return dataclasses.replace(
    item, leaves=tuple(_like(by_name[name], known[name]) for name in known)
  )


def _like(leaf: TargetLeaf, known: ItemLeaf) -> TargetLeaf:
  if leaf.spec is None:
    return leaf
  return dataclasses.replace(
    leaf,
    sharding=known.sharding or leaf.sharding,
    random_key_impl=known.random_key_impl,
  )


def _differences(
  leaves: Mapping[str, TargetLeaf], known: Mapping[str, ItemLeaf]
) -> Iterator[str]:
  for name in sorted(leaves.keys() | known.keys()):
    if name not in known:
      yield f"{name}: {_describe(leaves[name])}; the reference has no such leaf"
    elif name not in leaves:
      yield f"{name}: missing; the reference has {_describe(known[name])}"
    elif _describe(leaves[name]) != _describe(known[name]):
      yield (
        f"{name}: {_describe(leaves[name])}; the reference has "
        f"{_describe(known[name])}"
      )


def _describe(leaf: TargetLeaf | ItemLeaf) -> str:
  kinds: Sequence[KeyKind] = leaf.path.kinds
  levels = " in a list" if KeyKind.SEQUENCE in kinds else ""
  if leaf.spec is None:
    return f"an empty leaf{levels}"
  return f"{leaf.spec.dtype} {list(leaf.spec.shape)}{levels}"
