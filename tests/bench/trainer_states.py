"""Saves and restores a live training state, by relayout and by others."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.durable import sync_tree
from tests.bench.orbax_way import quiet_orbax

STEP = 4
UNSCANNED = "unscanned"
SCANNED = "scanned"
_AXIS = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
  """A model of one matrix a layer; 100 million weights as it is."""

  num_layers: int = 12
  shape: tuple[int, int] = (2048, 4096)

  @property
  def num_bytes(self) -> int:
    """Of the weights and both moments, float32."""
    rows, columns = self.shape
    return 3 * 4 * self.num_layers * rows * columns


def write_runs(path: Path, *, size: Size) -> None:
  """Writes the same state unscanned and scanned, as the manager does."""
  for name in (UNSCANNED, SCANNED):
    model, optimizer = _state(size, scan=name == SCANNED)
    with_manager = _manager(path / name)
    with_manager.save(STEP, model, optimizer)
    with_manager.close()


def save_by_relayout(_: Path, target: Path, *, size: Size) -> float:
  """Saves through relayout's manager; returns seconds, synced."""
  model, optimizer = _state(size, scan=True)
  return _timed_save(_manager, model, optimizer, target)


def save_by_tunix(_: Path, target: Path, *, size: Size) -> float:
  """Saves through Tunix's own manager, in its own layout."""
  ocp = quiet_orbax()
  from tunix.sft import checkpoint_manager

  def manager(path: Path) -> Any:
    return checkpoint_manager.CheckpointManager(str(path), _options(ocp))

  model, optimizer = _state(size, scan=True)
  return _timed_save(manager, model, optimizer, target)


def save_by_orbax(_: Path, target: Path, *, size: Size) -> float:
  """Saves the tree that relayout's manager saves, by Orbax alone."""
  ocp = quiet_orbax()
  from relayout.trainers.live.live_state import live_state
  from relayout.trainers.live.tree import maxtext_step

  model, optimizer = _state(size, scan=True)
  step = maxtext_step(live_state(model, optimizer, step=STEP))
  handlers = {
    item.name: ocp.PyTreeCheckpointHandler(use_zarr3=True)
    for item in step.items
  }
  started = time.perf_counter()
  with ocp.CheckpointManager(
    target, item_handlers=handlers, options=_options(ocp)
  ) as manager:
    items = {item.name: ocp.args.PyTreeSave(item.tree) for item in step.items}
    manager.save(STEP, args=ocp.args.Composite(**items), force=True)
  sync_tree(target)
  return time.perf_counter() - started


def restore_stacked(source: Path, target: Path, *, size: Size) -> float:
  """Restores an unscanned checkpoint into a scanned model."""
  import jax
  from flax import nnx

  model, optimizer = _state(size, scan=True)
  manager = _manager(source / UNSCANNED, layer_pattern="flat")
  started = time.perf_counter()
  manager.maybe_restore(model, optimizer)
  jax.block_until_ready(jax.tree.leaves(nnx.state((model, optimizer))))
  seconds = time.perf_counter() - started
  manager.close()
  _check(model, size)
  target.mkdir()
  return seconds


def restore_by_orbax(source: Path, target: Path, *, size: Size) -> float:
  """Restores the scanned checkpoint into arrays like the model's."""
  ocp = quiet_orbax()
  import jax

  from relayout.trainers.live.live_state import live_state
  from relayout.trainers.live.tree import maxtext_step

  model, optimizer = _state(size, scan=True)
  step = maxtext_step(live_state(model, optimizer))
  tree = next(item.tree for item in step.items if item.name == "items")
  checkpointer = ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_zarr3=True))
  arguments = ocp.args.PyTreeRestore(
    item=tree,
    restore_args=ocp.checkpoint_utils.construct_restore_args(tree),
  )
  started = time.perf_counter()
  item = source / SCANNED / str(STEP) / "items"
  restored = checkpointer.restore(item, args=arguments)
  jax.block_until_ready(jax.tree.leaves(restored))
  seconds = time.perf_counter() - started
  target.mkdir()
  return seconds


def _timed_save(
  manager: Callable[[Path], Any], model: Any, optimizer: Any, target: Path
) -> float:
  started = time.perf_counter()
  opened = manager(target)
  opened.save(STEP, model, optimizer, force=True)
  opened.close()
  sync_tree(target)
  return time.perf_counter() - started


def _options(ocp: Any) -> Any:
  return ocp.CheckpointManagerOptions(enable_async_checkpointing=False)


def _manager(path: Path, **arguments: Any) -> Any:
  ocp = quiet_orbax()
  from relayout.trainers.tunix.manager import MaxTextLayoutCheckpointManager

  return MaxTextLayoutCheckpointManager(str(path), _options(ocp), **arguments)


@functools.cache
def _state(size: Size, *, scan: bool) -> tuple[Any, Any]:
  """Returns a model and its optimizer, all of them random."""
  quiet_orbax()
  import jax
  import numpy as np
  import optax
  from flax import nnx

  model = nnx.Dict(decoder=nnx.Dict(**_layers(size, scan=scan)))
  transform = optax.chain(
    optax.clip_by_global_norm(1.0), optax.adamw(optax.constant_schedule(0.1))
  )
  optimizer = nnx.Optimizer(model, transform, wrt=nnx.Param)
  for path, variable in nnx.to_flat_state(
    nnx.state(optimizer, nnx.optimizer.OptState)
  ):
    if {"mu", "nu"} & {*path}:
      weight = model
      for name in path[path.index("decoder") :]:
        weight = weight[name]
      variable.set_value(jax.numpy.asarray(np.asarray(weight.get_value()) / 7))
  return model, optimizer


def _layers(size: Size, *, scan: bool) -> Mapping[str, Any]:
  import jax
  import numpy as np
  from flax import nnx

  def layer(kernel: Any) -> Any:
    array = jax.numpy.asarray(kernel)
    return nnx.Dict(mlp=nnx.Dict(kernel=nnx.Param(array)))

  kernels = [_kernel(size, number) for number in range(size.num_layers)]
  if scan:
    return {"layers": layer(np.stack(kernels, axis=_AXIS))}
  return {f"layers_{i}": layer(kernel) for i, kernel in enumerate(kernels)}


def _kernel(size: Size, number: int) -> Any:
  import numpy as np

  generator = np.random.default_rng(number)
  return generator.standard_normal(size.shape, dtype=np.float32)


def _check(model: Any, size: Size) -> None:
  import numpy as np

  stack = np.asarray(model["decoder"]["layers"]["mlp"]["kernel"].get_value())
  last = size.num_layers - 1
  if not np.array_equal(stack[:, last], _kernel(size, last)):
    raise AssertionError("the last layer is not what was saved")
