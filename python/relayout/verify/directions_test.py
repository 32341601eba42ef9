"""Every direction, on pairs that were made by hand: nothing is converted."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest

from relayout.errors import (
  CorruptCheckpointError,
  LayoutError,
  UnsupportedError,
)
from relayout.verify import Declared, render_table, verify
from tests.support import models, stores

_NUM_LAYERS = {"flat": 11, "gemma3": 14, "gemma4": 15}
_SCANNED = {
  "flat": models.scanned_flat,
  "gemma3": models.scanned_gemma3,
  "gemma4": models.scanned_gemma4,
}
_STACKS = {
  "flat": "decoder.layers",
  "gemma3": "decoder.layers.layers_1",
  "gemma4": "decoder.scanned_blocks.global_layer",
}


def _weights(pattern, mode):
  make = models.unscanned if mode == "unscanned" else _SCANNED[pattern]
  return make(_NUM_LAYERS[pattern])


def _write(path, layout, weights, **options):
  write = {"tunix": models.write_tunix, "maxtext": models.write_maxtext}[layout]
  number = "4" if layout == "tunix" else "3"
  return write(path / number, weights, **options)


def _verify(source, target, pattern="flat", **options):
  return verify(
    source, target, declared=Declared(layer_pattern=pattern), **options
  )


def _only(report):
  [found] = report.differences()
  return found


@pytest.mark.parametrize("pattern", _SCANNED)
@pytest.mark.parametrize("modes", ["us", "su", "ss", "uu"])
@pytest.mark.parametrize("layouts", ["tm", "mt", "mm", "tt"])
def test_every_direction(pattern, modes, layouts, tmp_path):
  mode = {"u": "unscanned", "s": "scanned"}
  layout = {"t": "tunix", "m": "maxtext"}
  source, target = (
    _write(tmp_path / side, layout[x], _weights(pattern, mode[y]))
    for side, x, y in zip("st", layouts, modes, strict=True)
  )
  report = _verify(source, target, pattern)
  assert report.is_ok, render_table(report)
  way = {"us": "stacked", "su": "unstacked"}.get(modes, "moved")
  others = {"stacked", "unstacked", "restacked", "moved"} - {way, "moved"}
  totals = report.totals()
  assert totals[way] > 3
  assert not any(totals[other] for other in others)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 1), (1, 2)])
@pytest.mark.parametrize("pattern", ["flat", "gemma3"])
def test_another_scan_axis(axes, pattern, tmp_path):
  source, target = (
    models.write_maxtext(
      tmp_path / side / "3",
      _SCANNED[pattern](_NUM_LAYERS[pattern], axis),
      custom={"param_scan_axis": axis},
    )
    for side, axis in zip("st", axes, strict=True)
  )
  report = _verify(source, target, pattern)
  assert report.is_ok, render_table(report)
  assert report.totals()["restacked"] > 3


def _damage(weights, pattern, case):
  """Damages a scanned model, in a leaf below the last stack."""
  stack = f"{_STACKS[pattern]}.mlp.kernel"
  experts = f"{_STACKS[pattern]}.mlp.experts"
  match case:
    case "flipped byte":
      weights[stack].view(np.uint8)[3, 1, 7] ^= 1
    case "swapped layers":
      weights[stack] = np.ascontiguousarray(weights[stack][:, ::-1])
    case "order of experts":
      weights[experts] = np.ascontiguousarray(weights[experts][[1, 0, 2]])
    case "missing leaf":
      del weights[stack]
    case "extra leaf":
      weights[f"{_STACKS[pattern]}.mlp.extra"] = weights[stack]
    case "short stack":
      weights[stack] = np.ascontiguousarray(weights[stack][:, 1:])
  return weights


_KINDS = {
  "flipped byte": {"value"},
  "swapped layers": {"order"},
  "order of experts": {"value"},
  "missing leaf": {"missing"},
  "extra leaf": {"extra"},
}


@pytest.mark.parametrize("pattern", _SCANNED)
@pytest.mark.parametrize("case", _KINDS)
def test_damage_to_a_stack(pattern, case, tmp_path):
  source = models.write_tunix(
    tmp_path / "s" / "4", _weights(pattern, "unscanned")
  )
  target = models.write_maxtext(
    tmp_path / "t" / "3",
    _damage(_weights(pattern, "scanned"), pattern, case),
  )
  found = list(_verify(source, target, pattern).differences())
  assert {str(difference.kind) for difference in found} == _KINDS[case]
  name = _STACKS[pattern].removeprefix("decoder.")
  assert all(name in f"{x.leaf} {x.detail}" for x in found), found


@pytest.mark.parametrize("pattern", _SCANNED)
def test_layers_of_an_unstacked_model_that_changed_places(pattern, tmp_path):
  weights = _weights(pattern, "unscanned")
  one, other = (f"decoder.layers_{i}.mlp.kernel" for i in (5, 11))
  if pattern == "flat":
    other = "decoder.layers_10.mlp.kernel"
  weights[one], weights[other] = weights[other], weights[one]
  source = models.write_maxtext(
    tmp_path / "s" / "3", _weights(pattern, "scanned")
  )
  target = models.write_tunix(tmp_path / "t" / "4", weights)
  found = list(_verify(source, target, pattern).differences())
  assert len(found) == 6  # of weights and both moments
  assert {x.leaf for x in found[:2]} == {
    f"model_params/{one}.value",
    f"model_params/{other}.value",
  }
  assert all("in another order" in x.detail for x in found)


def test_blocks_in_another_order(tmp_path):
  """Layers 0 to 5 and 6 to 11 have changed places as wholes."""
  weights = models.unscanned(12)
  renamed = {
    name.replace(f"layers_{i}.", f"layers_{(i + 6) % 12}."): values
    for i in range(12)
    for name, values in weights.items()
    if f"layers_{i}." in name
  }
  source = models.write_maxtext(tmp_path / "s" / "3", models.scanned_gemma3(12))
  target = models.write_tunix(tmp_path / "t" / "4", weights | renamed)
  found = list(_verify(source, target, "gemma3").differences())
  assert {str(x.kind) for x in found} == {"order"}
  assert len(found) == 12 * 4 * 3


def test_a_model_that_is_stacked_by_another_pattern(tmp_path):
  source = models.write_tunix(tmp_path / "s" / "4", models.unscanned(12))
  target = models.write_maxtext(tmp_path / "t" / "3", models.scanned_gemma3(12))
  assert _verify(source, target, "gemma3").is_ok
  assert not _verify(source, target, "flat").is_ok
  with pytest.raises(LayoutError, match="looks like a part of a layer"):
    _verify(target, source, "deepseek")
  with pytest.raises(UnsupportedError, match="scan_layers=False only"):
    verify(source, target, declared=Declared(model_name="gemma4-e2b"))


def test_a_stack_with_a_layer_too_few(tmp_path):
  source = models.write_tunix(tmp_path / "s" / "4", models.unscanned(11))
  weights = _damage(models.scanned_flat(11), "flat", "short stack")
  target = models.write_maxtext(tmp_path / "t" / "3", weights)
  found = list(_verify(source, target).differences())
  assert {"shape"} <= {str(x.kind) for x in found}
  assert "holds 10 layers along axis 1, expected 11" in found[0].detail


def test_a_missing_layer(tmp_path):
  weights = models.unscanned(11)
  lost = [name for name in weights if "layers_10." in name]
  for name in lost:
    del weights[name]
  source = models.write_maxtext(tmp_path / "s" / "3", models.scanned_flat(11))
  target = models.write_tunix(tmp_path / "t" / "4", weights)
  found = list(_verify(source, target).differences())
  assert len(found) == 3 * len(lost)
  assert all(x.kind == "missing" for x in found)
  assert all("layer [(" in x.detail for x in found)


def _cast(weights, dtype):
  return {name: values.astype(dtype) for name, values in weights.items()}


def _told(step, **options):
  content = {"relayout": "0", "options": {"to": "maxtext", **options}}
  (step / "relayout.json").write_text(json.dumps(content))


def test_a_cast_must_have_been_asked_for(tmp_path):
  weights = models.unscanned(2)
  weights["decoder.layers_0.mlp.kernel"][0, 0] = 1 + 2**-9
  source = models.write_tunix(tmp_path / "s" / "4", weights, updates=None)
  target = models.write_maxtext(
    tmp_path / "t" / "3", _cast(weights, ml_dtypes.bfloat16), updates=None
  )
  kinds = {str(x.kind) for x in _verify(source, target).differences()}
  assert kinds == {"dtype"}
  _told(target, dtypes={"moments": "bfloat16"})
  assert not _verify(source, target).is_ok
  _told(target, dtypes={"weights": "bfloat16"})
  report = _verify(source, target)
  assert report.is_ok, render_table(report)
  assert report.totals()["cast"] == 9
  assert "float32 -> bfloat16" in render_table(report)


def test_a_cast_must_be_rounded_to_the_nearest(tmp_path):
  weights = {"decoder.norm.scale": np.array([1 + 2**-8 + 2**-20], np.float32)}
  source = models.write_tunix(tmp_path / "s" / "4", weights, updates=None)
  target = models.write_maxtext(
    tmp_path / "t" / "3",
    {"decoder.norm.scale": np.array([1], ml_dtypes.bfloat16)},
    updates=None,
  )
  _told(target, dtypes={"weights": "bfloat16"})
  found = _only(_verify(source, target))
  assert found.kind == "value"
  assert "first at [0]: 1, expected 1.00781" in found.detail


def test_what_was_left_out_on_request(tmp_path):
  weights = models.unscanned(2)
  source = models.write_tunix(tmp_path / "s" / "4", weights, updates=None)
  del weights["decoder.layers_1.gate"]
  target = models.write_maxtext(tmp_path / "t" / "3", weights, updates=None)
  assert _only(_verify(source, target)).kind == "missing"
  _told(target, drop=["*.gate"])
  report = _verify(source, target)
  assert report.is_ok, render_table(report)
  assert "left out on request: --drop=*.gate" in render_table(report)
  _told(target, keep=["decoder.layers_1.*"])
  assert _only(_verify(source, target)).kind == "missing"


@pytest.mark.parametrize(
  ("item", "name", "value", "kind"),
  [
    ("optimizer_state", "step.value", np.array(5, np.uint32), "value"),
    ("optimizer_state", "step.value", np.array(4, np.int32), "dtype"),
    (
      "optimizer_state",
      "opt_state.1.2.count.value",
      np.array(3, np.int32),
      "value",
    ),
    (
      "optimizer_state",
      "opt_state.1.0.count.value",
      np.array(3, np.int32),
      "value",
    ),
  ],
)
def test_counters_of_a_tunix_target(item, name, value, kind, tmp_path):
  weights = models.unscanned(1)
  source = models.write_maxtext(tmp_path / "s" / "3", weights)
  target = models.write_tunix(tmp_path / "t" / "4", weights)
  assert _verify(source, target).is_ok
  stores.delete_array(target / item, name)
  stores.write_item(target / item, {name: value})
  found = _only(_verify(source, target))
  assert (found.leaf, str(found.kind)) == (f"{item}/{name}", kind)


def test_a_missing_item(tmp_path):
  weights = models.unscanned(1)
  source = models.write_maxtext(tmp_path / "s" / "3", weights)
  target = models.write_tunix(tmp_path / "t" / "4", weights)
  shutil.rmtree(target / "optimizer_state")
  found = list(_verify(source, target).differences())
  assert [str(x.kind) for x in found] == ["metadata"]
  assert "a handler of optimizer_state" in found[0].detail


def test_wrappers_of_a_tunix_target(tmp_path):
  weights = {"decoder.norm.scale": np.arange(3, dtype=np.float32)}
  source = models.write_maxtext(tmp_path / "s" / "3", weights)
  target = models.write_tunix(tmp_path / "t" / "4", weights)
  shutil.rmtree(target / "optimizer_state")
  root = "opt_state.inner_opt_state"
  path = "decoder.norm.scale"
  arrays = {
    "step": np.array(4, np.uint32),
    "opt_state.mini_step": np.array(0, np.int32),
    "opt_state.gradient_step": np.array(4, np.int32),
    f"opt_state.acc_grads.{path}": np.zeros(3, np.float32),
    f"{root}.0.count": np.array(4, np.int32),
    f"{root}.0.mu.{path}": weights[path] + np.float32(0.25),
    f"{root}.0.nu.{path}": weights[path] + np.float32(0.5),
    f"{root}.2.count": np.array(4, np.int32),
  }
  arrays = {f"{name}.value": values for name, values in arrays.items()}
  item = target / "optimizer_state"
  models.write_item(item, arrays)
  report = _verify(source, target)
  assert report.is_ok, render_table(report)
  assert report.totals()["derived"] == 4
  for name, value, detail in (
    ("opt_state.mini_step.value", np.array(1, np.int32), "1, expected 0"),
    ("opt_state.gradient_step.value", np.array(3, np.int32), "3, expected 4"),
    ("step.value", np.array(8, np.uint32), "8, expected 4"),
    (
      f"opt_state.acc_grads.{path}.value",
      np.array([0, 0, 1], np.float32),
      "1 elements are not zero",
    ),
  ):
    stores.delete_array(item, name)
    stores.write_item(item, {name: value})
    found = _only(_verify(source, target))
    assert found.leaf == f"optimizer_state/{name}"
    assert detail in found.detail
    stores.delete_array(item, name)
    stores.write_item(item, {name: arrays[name]})


_RNG = "decoder.layers_0.rngs.params.count"
_ASIDE = f"tunix_unscanned.model_params.{_RNG}.value"


def _with_aside(tmp_path, value):
  rng = {_RNG: np.array(7, np.uint32)}
  source = models.write_tunix(
    tmp_path / "s" / "4", models.unscanned(2) | rng, updates=None
  )
  target = models.write_maxtext(
    tmp_path / "t" / "3", models.scanned_flat(2), updates=None
  )
  models.write_item(target / "relayout", {_ASIDE: value})
  return source, target


def test_what_is_set_aside_must_be_equal(tmp_path):
  report = _verify(*_with_aside(tmp_path, np.array(7, np.uint32)))
  assert report.is_ok, render_table(report)
  assert report.totals()["set_aside"] == 1
  found = _only(_verify(*_with_aside(tmp_path / "2", np.array(8, np.uint32))))
  assert (found.leaf, found.kind) == (f"relayout/{_ASIDE}", "value")


def test_what_is_set_aside_must_be_of_the_source(tmp_path):
  source, target = _with_aside(tmp_path, np.array(7, np.uint32))
  stores.write_item(
    target / "relayout", {"tunix_unscanned.model_params.x": np.zeros(2)}
  )
  found = list(_verify(source, target).differences())
  assert {str(x.kind) for x in found} == {"extra", "metadata"}


def test_what_was_set_aside_is_restored(tmp_path):
  original, converted = _with_aside(tmp_path, np.array(7, np.uint32))
  back = tmp_path / "back" / "4"
  shutil.copytree(original, back)
  report = _verify(converted, back)
  assert report.is_ok, render_table(report)
  assert report.totals()["restored"] == 1


def test_directories_go_along(tmp_path):
  weights = models.unscanned(1)
  source, target = (
    models.write_maxtext(tmp_path / side / "3", weights) for side in "st"
  )
  (source / "iter").mkdir()
  (source / "iter" / "state.json").write_text("{}")
  assert _only(_verify(source, target)).leaf == "iter"
  shutil.copytree(source / "iter", target / "iter")
  assert _verify(source, target).is_ok
  (target / "iter" / "state.json").write_text("{ }")
  found = _only(_verify(source, target))
  assert (found.leaf, found.kind) == ("iter/state.json", "file")


@pytest.mark.parametrize("side", ["source", "target"])
def test_hosts_that_never_merged(side, tmp_path):
  name = "decoder.norm.scale"
  weights = {name: np.arange(40, dtype=np.float32)}
  sides = {
    "source": models.write_tunix(tmp_path / "s" / "4", weights, updates=None),
    "target": models.write_maxtext(tmp_path / "t" / "3", weights, updates=None),
  }
  item, array = {
    "source": (sides["source"] / "model_params", f"{name}.value"),
    "target": (sides["target"] / "items", f"params.params.{name}"),
  }[side]
  stores.remove_database(item)
  stores.write_split_item(item, {array: weights[name]}, chunks={array: (7,)})
  report = _verify(*sides.values())
  assert report.is_ok, render_table(report)
  stores.overwrite_key(item / "ocdbt.process_1", f"{array}/1", None)
  if side == "source":
    with pytest.raises(CorruptCheckpointError, match="5 of its 6 chunks"):
      _verify(*sides.values())
  else:
    assert _only(_verify(*sides.values())).kind == "store"


def test_more_chunks_than_can_be_read(tmp_path):
  """An array of a few bytes claims 2^58 chunks, and that none is stored."""
  weights = {"decoder.norm.scale": np.zeros(3, np.float32)}
  source = models.write_tunix(tmp_path / "s" / "4", weights, updates=None)
  target = models.write_maxtext(tmp_path / "t" / "3", weights, updates=None)
  for item, name in (
    (source / "model_params", "decoder.norm.scale.value"),
    (target / "items", "params.params.decoder.norm.scale"),
  ):
    stores.delete_array(item, name)
    stores.write_hollow_item(item, name, shape=(1 << 30, 1 << 28), chunk=(1, 1))
    tree = json.loads((item / "_METADATA").read_text())
    tree["store_array_data_equal_to_fill_value"] = False
    (item / "_METADATA").write_text(json.dumps(tree))
  with pytest.raises(UnsupportedError, match="Is it damaged"):
    _verify(source, target)
