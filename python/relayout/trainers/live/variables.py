"""The variables of a live model or optimizer, under the names of Tunix."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from relayout.errors import LayoutError
from relayout.layouts.state import Role
from relayout.layouts.wrappers import VARIABLE_LEVEL
from relayout.metadata.item import ItemLeaf
from relayout.tree.array_spec import ArraySpec
from relayout.tree.key_path import KeyPath, TypedPath, dotted

_EPHEMERAL = (nnx.Cache, nnx.Intermediate)


@dataclasses.dataclass(frozen=True, slots=True)
class LiveVariable:
  """A variable that holds one array.

  Attributes:
    path: Where it stands, outermost name first.
    variable: The variable itself.
  """

  path: KeyPath
  variable: nnx.Variable[Any]

  @property
  def value(self) -> Any:
    """The array; of a typed random key, the key."""
    return self.variable.get_value()

  @property
  def key_impl(self) -> str | None:
    """Generator of a typed random key; None for other arrays."""
    if not _is_typed_key(self.value):
      return None
    return str(jax.random.key_impl(self.value))

  @property
  def data(self) -> Any:
    """The array; of a typed random key, its words as uint32."""
    value = self.value
    return jax.random.key_data(value) if _is_typed_key(value) else value

  @property
  def name(self) -> str:
    """The name of the array in Tunix's layout."""
    return dotted((*self.path, VARIABLE_LEVEL))

  def put(self, data: Any) -> None:
    """Replaces the array; `data` is what `data` would return after that."""
    impl = self.key_impl
    value = data if impl is None else jax.random.wrap_key_data(data, impl=impl)
    self.variable.set_value(value)

  def item_leaf(self) -> ItemLeaf:
    """Returns the leaf that Tunix would store it as."""
    return ItemLeaf(
      path=TypedPath.of_dicts((*self.path, VARIABLE_LEVEL)),
      name=self.name,
      spec=_spec(self.data),
      value_type="jax.Array",
      random_key_impl=self.key_impl,
    )


def variables(node: Any, *filters: Any) -> Iterator[LiveVariable]:
  """Yields the variables of a module; one that is shared, once.

  Those that are recomputed whenever they are needed are no part of a
  checkpoint, and left out.

  Args:
    node: The module, or an optimizer.
    *filters: As of `nnx.state`: which variables; none: all.

  Raises:
    LayoutError: If a variable holds anything but one array, or nothing.
  """
  for live in _all(node, *filters):
    if isinstance(live.variable, _EPHEMERAL) or _is_empty(live.value):
      continue
    if not isinstance(live.value, jax.Array | np.ndarray):
      raise LayoutError(
        f"{dotted(live.path)}: this {type(live.variable).__name__} holds a "
        f"{type(live.value).__name__}, not an array; it can't be in a "
        "checkpoint"
      )
    yield live


def ephemeral_names(node: nnx.Module) -> Iterator[str]:
  """Yields the names of the variables that `variables` leaves out."""
  for live in _all(node, *_EPHEMERAL):
    yield live.name


def _all(node: Any, *filters: Any) -> Iterator[LiveVariable]:
  state = nnx.state(node, nnx.Any(*filters)) if filters else nnx.state(node)
  for path, variable in nnx.to_flat_state(state):
    yield LiveVariable(tuple(map(str, path)), variable)


def role_of(variable: nnx.Variable[Any]) -> Role:
  """Returns what a model's variable is, by its type, as MaxText sorts them."""
  if isinstance(variable, nnx.Param):
    return Role.WEIGHT
  return Role.RNG if isinstance(variable, nnx.RngState) else Role.AUXILIARY


def _is_empty(value: Any) -> bool:
  """Whether a value has no arrays: a node that a mask leaves out."""
  return not jax.tree.leaves(value)


def _is_typed_key(value: Any) -> bool:
  dtype = getattr(value, "dtype", None)
  return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _spec(array: Any) -> ArraySpec:
  """Returns the spec of an array that is not stored yet, as a single chunk."""
  shape = tuple(array.shape)
  return ArraySpec(
    shape=shape,
    dtype=np.dtype(array.dtype).name,
    chunk_shape=tuple(max(length, 1) for length in shape),
    inner_chunk_shape=None,
    zarr_format=3,
    key_style="default",
    key_separator="/",
    raw={},
  )
