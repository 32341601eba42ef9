"""Every kind of damage to a converted checkpoint is found, and named."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.verify import verify
from tests.support import golden, stores

_SCANNED = (
  "sft_unscan",
  Options(scan_layers="true", layer_pattern="flat", step=4),
)
_UNSCANNED = ("sft_unscan", Options(step=4))
_AT_ZERO = ("sft_scan_stock0", Options())
_WITH_RNG = ("distill_scan_tmid", Options())
_WEIGHT = "params.params.decoder.layers.mlp.wi_0.kernel"
_MU = "opt_state.0.mu.params.decoder.layers.mlp.wi_0.kernel"
_NU = _MU.replace(".mu.", ".nu.")


class Target:
  """A converted step, to be damaged."""

  def __init__(self, source: Path, step: Path):
    self.source, self.step, self.item = source, step, step / "items"

  def read(self, name: str) -> np.ndarray:
    return stores.read_item(self.item)[name]

  def delete(self, name: str, *, keep_tree: bool = False) -> None:
    """Removes an array, and unless `keep_tree` its entry in side files."""
    store = ts.KvStore.open(stores.kvstore(self.item)).result()
    keys = ts.KvStore.KeyRange(f"{name}/", f"{name}0")
    store.delete_range(keys).result()
    if not keep_tree:
      self.edit_tree(lambda tree: tree.pop(str(tuple(name.split(".")))))
      self._edit_entries(lambda entries: entries.pop(name))

  def write(
    self, name: str, values: np.ndarray, like: str | None = None
  ) -> None:
    """Puts an array in place; named in side files as `like` is, or not."""
    store = ts.KvStore.open(stores.kvstore(self.item)).result()
    store.delete_range(ts.KvStore.KeyRange(f"{name}/", f"{name}0")).result()
    stores.write_item(self.item, {name: values})
    if like is not None:
      key, pattern = str(tuple(name.split("."))), str(tuple(like.split(".")))
      self.edit_tree(
        lambda tree: tree.update({key: _renamed(tree[pattern], name)})
      )
      self._edit_entries(lambda entries: entries.update({name: entries[like]}))

  def change(self, name: str, edit) -> None:
    """Changes values in place: same chunks, same metadata."""
    spec = {"driver": "zarr", "kvstore": stores.kvstore(self.item, f"{name}/")}
    array = ts.open(spec).result()
    values = array.read().result()
    edit(values)
    array.write(values).result()

  def swap(self, one: str, other: str) -> None:
    left, right = self.read(one), self.read(other)
    self.change(one, lambda values: np.copyto(values, right))
    self.change(other, lambda values: np.copyto(values, left))

  def edit(self, path: str, change) -> None:
    """Changes a JSON file."""
    file = self.step / path
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))

  def edit_tree(self, change) -> None:
    self.edit("items/_METADATA", lambda value: change(value["tree_metadata"]))

  def _edit_entries(self, change) -> None:
    """Changes the entries of both files that have one for each array."""
    from relayout.metadata import sharding

    path = self.item / "_sharding"
    texts = sharding.parse_shardings(path.read_bytes(), "test")
    change(texts)
    path.write_bytes(sharding.shardings_bytes(texts))

    def edit(value):
      entries = {
        entry["array_metadata"]["param_name"]: entry
        for entry in value["array_metadatas"]
      }
      change(entries)
      value["array_metadatas"] = [
        {"array_metadata": entry["array_metadata"] | {"param_name": name}}
        for name, entry in entries.items()
      ]

    self.edit("items/array_metadatas/process_0", edit)


def _renamed(entry: dict[str, Any], name: str) -> dict[str, Any]:
  keys = [{"key": key, "key_type": 2} for key in name.split(".")]
  return entry | {"key_metadata": keys}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
  """Returns the converted step directory of a case, made once."""
  made: dict[str, Path] = {}

  def make(name: str, options: Options) -> Path:
    key = f"{name} {options}"
    if key not in made:
      out = tmp_path_factory.mktemp(name)
      convert(golden.checkpoints(name), out, options)
      [made[key]] = out.iterdir()
    return made[key]

  return make


@pytest.fixture
def target(request, converted, tmp_path):
  name, options = request.param
  step = tmp_path / "checkpoints" / "3"
  shutil.copytree(converted(name, options), step)
  return Target(golden.checkpoints(name), step)


def _verify(target: Target):
  return verify(_source_step(target), target.step.parent)


def _source_step(target: Target) -> Path:
  """Returns the last step of the source, which is what was converted."""
  return max(target.source.iterdir(), key=lambda path: int(path.name))


@pytest.mark.parametrize(
  "target",
  [_SCANNED, _UNSCANNED, _WITH_RNG],
  indirect=True,
  ids=["scanned", "unscanned", "rng"],
)
def test_undamaged(target):
  report = _verify(target)
  assert report.is_ok, report.totals()


def _set(index, value):
  def edit(values):
    values[index] = value

  return edit


def _one_bit(target):
  target.change(_WEIGHT, lambda x: x.view(np.uint32).__setitem__((5, 2, 7), 0))


def _missing_moment(target):
  target.delete(_MU)


def _swapped_moments(target):
  target.swap(_MU, _NU)


def _wrong_step(target):
  target.change("step", _set((), 5))


def _wide_step(target):
  target.write("step", np.array(4, np.int64))


def _step_of_two(target):
  target.write("step", np.array([4, 4], np.int32))


def _missing_step(target):
  target.delete("step")


def _wrong_count(target):
  target.change("opt_state.0.count", _set((), 3))


def _wrong_schedule(target):
  target.change("opt_state.2.count", _set((), 0))


def _missing_schedule(target):
  target.delete("opt_state.2.count")


def _transposed_stack(target):
  values = target.read(_WEIGHT)
  target.write(_WEIGHT, np.ascontiguousarray(np.moveaxis(values, 1, 0)))


def _short_stack(target):
  target.write(_WEIGHT, np.ascontiguousarray(target.read(_WEIGHT)[:, :3]))


def _permuted_stack(target):
  target.change(_WEIGHT, lambda x: np.copyto(x, x[:, [0, 2, 1, 3]]))


def _other_type(target):
  target.write(_WEIGHT, target.read(_WEIGHT).astype(np.float64))


def _extra_leaf(target):
  name = "params.params.decoder.layers.mlp.extra.kernel"
  target.write(name, target.read(_WEIGHT), like=_WEIGHT)


def _extra_leaf_outside_of_the_layout(target):
  target.write("model.kernel", target.read(_WEIGHT), like=_WEIGHT)


def _tree_names_what_is_not_stored(target):
  target.delete(_WEIGHT, keep_tree=True)


def _tree_lacks_what_is_stored(target):
  target.edit_tree(lambda tree: tree.pop(str(tuple(_WEIGHT.split(".")))))


def _no_tree(target):
  (target.item / "_METADATA").unlink()


def _wrong_zarr_version(target):
  target.edit("items/_METADATA", lambda x: x.update(use_zarr3=True))


def _wrong_store(target):
  target.edit("items/_METADATA", lambda x: x.update(use_ocdbt=False))


def _two_zarr_versions(target):
  stores.write_item(target.item, {_WEIGHT: target.read(_WEIGHT)}, zarr_format=3)


def _optimizer_as_a_dict(target):
  def edit(tree):
    for entry in tree.values():
      for key in entry["key_metadata"]:
        key["key_type"] = 2

  target.edit_tree(edit)


def _no_stateless_member(target):
  target.edit_tree(lambda tree: tree.pop("('opt_state', '1')"))


def _stateless_member_is_a_dict(target):
  target.edit_tree(
    lambda tree: tree["('opt_state', '1')"]["value_metadata"].update(
      value_type="Dict"
    )
  )


def _wrong_scan_layers(target):
  target.edit(
    "_CHECKPOINT_METADATA",
    lambda x: x["custom_metadata"].update(scan_layers=False),
  )


def _wrong_handler(target):
  target.edit(
    "_CHECKPOINT_METADATA", lambda x: x["item_handlers"].update(items="other")
  )


def _step_metadata_in_item(target):
  shutil.copy(target.step / "_CHECKPOINT_METADATA", target.item)


def _no_sharding(target):
  (target.item / "_sharding").unlink()


def _sharding_lacks_an_array(target):
  from relayout.metadata import sharding

  path = target.item / "_sharding"
  texts = sharding.parse_shardings(path.read_bytes(), "test")
  del texts[_WEIGHT]
  path.write_bytes(sharding.shardings_bytes(texts))


def _array_metadatas_lack_an_array(target):
  target.edit(
    "items/array_metadatas/process_0", lambda x: x["array_metadatas"].pop(0)
  )


def _missing_chunk(target):
  store = ts.KvStore.open(stores.kvstore(target.item)).result()
  store.write(f"{_WEIGHT}/0.2.0", None).result()


def _unreadable_chunk(target):
  store = ts.KvStore.open(stores.kvstore(target.item)).result()
  store.write(f"{_WEIGHT}/0.2.0", b"no zstd").result()


def _unreadable_step(target):
  store = ts.KvStore.open(stores.kvstore(target.item)).result()
  store.write("step/0", b"no zstd").result()


def _stray_key(target):
  store = ts.KvStore.open(stores.kvstore(target.item)).result()
  store.write("nothing/0.0", b"x").result()


def _no_optimizer_but_a_step(target):
  for name in stores.array_names(target.item):
    if name.startswith("opt_state."):
      target.delete(name)
  target.edit_tree(lambda tree: tree.pop("('opt_state', '1')"))


def _optimizer_of_another_form(target):
  for name in list(stores.array_names(target.item)):
    if name.startswith("opt_state.0."):
      flat = name.replace("opt_state.0.", "opt_state.")
      target.write(flat, target.read(name), like=name)
      target.delete(name)


_DAMAGES = [
  (_one_bit, "value", f"items/{_WEIGHT}", "first at [5, 2, 7]: 0.0, expected"),
  (_missing_moment, "missing", "optimizer_state/", f"expected as items/{_MU}"),
  (_swapped_moments, "value", f"items/{_MU}", "elements differ from"),
  (_wrong_step, "value", "items/step", "5, expected 4: the trainer's step"),
  (_wide_step, "dtype", "items/step", "int64, expected int32"),
  (_step_of_two, "layout", "items/step", "of shape [2]"),
  (_missing_step, "missing", "items/step", "expected 4"),
  (_wrong_count, "value", "items/opt_state.0.count", ": 3, expected 4"),
  (_wrong_schedule, "value", "items/opt_state.2.count", ": 0, expected 4"),
  (_missing_schedule, "missing", "optimizer_state/", "opt_state.2.count"),
  (_transposed_stack, "shape", f"items/{_WEIGHT}", "seem to be at axis 0"),
  (_short_stack, "shape", f"items/{_WEIGHT}", "holds 3 layers"),
  (_permuted_stack, "order", f"items/{_WEIGHT}", "another order: 0, 2, 1, 3"),
  (_other_type, "dtype", f"items/{_WEIGHT}", "float64, expected float32"),
  (_extra_leaf, "extra", "items/params.params.decoder.layers.mlp.extra", "no"),
  (_extra_leaf_outside_of_the_layout, "layout", "items/model.kernel", "not a"),
  (_tree_names_what_is_not_stored, "metadata", f"items/{_WEIGHT}", "no such"),
  (_tree_lacks_what_is_stored, "metadata", f"items/{_WEIGHT}", "does not name"),
  (_no_tree, "metadata", "items/_METADATA", "missing"),
  (_wrong_zarr_version, "metadata", "items/_METADATA", "use_zarr3 is true"),
  (_wrong_store, "metadata", "items/_METADATA", "use_ocdbt is false"),
  (_two_zarr_versions, "metadata", "items/_METADATA", "zarr v2 and v3"),
  (_optimizer_as_a_dict, "metadata", "items/opt_state.0", "dict/list"),
  (_no_stateless_member, "missing", "items/opt_state.1", "None"),
  (_stateless_member_is_a_dict, "metadata", "items/opt_state.1", "empty Dict"),
  (_wrong_scan_layers, "metadata", "_CHECKPOINT_METADATA", "are scanned"),
  (_wrong_handler, "metadata", "_CHECKPOINT_METADATA", "handler"),
  (_step_metadata_in_item, "metadata", "items/_CHECKPOINT", "at the step"),
  (_no_sharding, "metadata", "items/_sharding", "missing"),
  (_sharding_lacks_an_array, "metadata", "items/_sharding", f"lacks {_WEIGHT}"),
  (_array_metadatas_lack_an_array, "metadata", "items/array_meta", "lacks"),
  (_missing_chunk, "store", f"items/{_WEIGHT}", "1 of its chunks"),
  (_unreadable_chunk, "unreadable", f"items/{_WEIGHT}", "can't be read"),
  (_unreadable_step, "unreadable", "items/step", "step"),
  (_stray_key, "store", "items/nothing/0.0", "no array"),
  (_no_optimizer_but_a_step, "missing", "optimizer_state/", "expected as"),
  (_optimizer_of_another_form, "layout", "items/opt_state", "adam_pax"),
]


@pytest.mark.parametrize("target", [_SCANNED], indirect=True, ids=[""])
@pytest.mark.parametrize(
  ("damage", "kind", "leaf", "detail"),
  _DAMAGES,
  ids=[damage[0].__name__.strip("_") for damage in _DAMAGES],
)
def test_damage_is_found(target, damage, kind, leaf, detail):
  damage(target)
  report = _verify(target)
  assert not report.is_ok
  found = [
    difference
    for difference in report.differences()
    if difference.kind == kind and difference.leaf.startswith(leaf)
  ]
  shown = "\n".join(map(str, report.differences()))
  assert any(detail in difference.detail for difference in found), shown


@pytest.mark.parametrize("target", [_UNSCANNED], indirect=True, ids=[""])
def test_a_missing_layer_is_named(target):
  for name in stores.array_names(target.item):
    if ".layers_2." in name:
      target.delete(name)
  report = _verify(target)
  missing = [d for d in report.differences() if d.kind == "missing"]
  assert len(missing) == 33
  assert all(".layers_2." in d.leaf for d in missing)
  assert len(list(report.differences())) == 33


@pytest.mark.parametrize("target", [_UNSCANNED], indirect=True, ids=[""])
def test_layers_that_changed_places_are_found(target):
  name = "params.params.decoder.layers_{}.mlp.wi_0.kernel"
  target.swap(name.format(1), name.format(2))
  found = [d.leaf for d in _verify(target).differences()]
  assert found == [f"items/{name.format(1)}", f"items/{name.format(2)}"]


@pytest.mark.parametrize("target", [_UNSCANNED], indirect=True, ids=[""])
def test_a_stack_beside_layers_is_found(target):
  like = "params.params.decoder.layers_0.mlp.wi_0.kernel"
  target.write(_WEIGHT, np.zeros((64, 4, 128), np.float32), like=like)
  kinds = {d.kind for d in _verify(target).differences()}
  assert {"layout", "extra"} <= kinds


@pytest.mark.parametrize("target", [_WITH_RNG], indirect=True, ids=[""])
def test_rng_state_that_maxtext_can_read_must_not_be_dropped(target):
  names = [n for n in stores.array_names(target.item) if ".rngs." in n]
  target.delete(names[0])
  [found] = _verify(target).differences()
  assert found.kind == "missing"
  assert names[0] in found.detail
  for name in names[1:]:
    target.delete(name)
  assert len(list(_verify(target).differences())) == len(names)


@pytest.mark.parametrize("target", [_WITH_RNG], indirect=True, ids=[""])
def test_the_kind_of_keys_must_be_kept(target):
  def edit(value):
    for entry in value["array_metadatas"]:
      if entry["array_metadata"]["ext_metadata"]:
        entry["array_metadata"]["ext_metadata"]["random_key_impl"] = "rbg"

  target.edit("items/array_metadatas/process_0", edit)
  assert {d.kind for d in _verify(target).differences()} == {
    "layout",
    "metadata",
  }


@pytest.mark.parametrize("target", [_UNSCANNED], indirect=True, ids=[""])
def test_keys_that_maxtext_cannot_read_must_be_dropped(target):
  source = stores.read_item(_source_step(target) / "model_params")
  for name, values in source.items():
    if ".rngs." in name:
      place = f"nnx_aux.model.{name.removesuffix('.value')}"
      target.write(place, values, like="step")
  found = [d for d in _verify(target).differences() if d.kind == "layout"]
  assert len(found) == 1
  assert "unsafe_rbg only" in found[0].detail


@pytest.mark.parametrize("target", [_AT_ZERO], indirect=True, ids=[""])
def test_minus_zero_is_not_zero(target):
  target.change(_MU, lambda values: np.copyto(values, -0.0))
  [found] = _verify(target).differences()
  assert "32768 of 32768 elements differ" in found.detail
  assert "first at [0, 0, 0]: -0.0, expected 0.0" in found.detail


@pytest.mark.parametrize("target", [_SCANNED], indirect=True, ids=[""])
def test_a_lost_data_file_is_found(target):
  for path in (target.item / "d").iterdir():
    if path.stat().st_size > 100_000:
      path.unlink()
  report = _verify(target)
  assert {d.kind for d in report.differences()} == {"unreadable"}
