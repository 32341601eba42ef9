"""Every form of a model becomes every other, told cell by cell.

The models are value-coded and stacked by NumPy; TensorStore writes and reads.
"""

import itertools
from pathlib import Path

import numpy as np
import pytest

from relayout.convert.options import Options
from relayout.convert.run import convert
from tests.support import stores, value_coded

_FORMS = (None, 0, 1, 2)
"""Unscanned, and scanned at each axis."""

_UPDATES = 4
_NUMBER = {"maxtext": 3, "tunix": 4}
"""The directory of four updates."""


def _weights(model, form):
  return model.unscanned() if form is None else model.scanned(form)


def _chunks(model, form, items, *, single):
  """Returns chunk shapes with one layer each where `single`."""
  if form is None or not single:
    return {}
  axes = model.layer_axes(form)
  result = {}
  for name, values in items.items():
    for leaf, layers in axes.items():
      if name.removesuffix(".value").endswith(leaf):
        result[name] = tuple(
          1 if axis in layers else n for axis, n in enumerate(values.shape)
        )
  assert result
  return result


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
  """Returns the run of a model in a form and a layout, written once."""
  root = tmp_path_factory.mktemp("sources")

  def source(name, layout, form, *, single=False):
    run = root / f"{name}_{layout}_{form}_{single}"
    if not run.exists():
      model = value_coded.MODELS[name]
      found = _stored(model, layout, form)
      for item, arrays in found.items():
        stores.write_item(
          run / str(_NUMBER[layout]) / item,
          arrays,
          chunks=_chunks(model, form, arrays, single=single)
          if item != "optimizer_state"
          else None,
        )
    return run

  return source


def _stored(model, layout, form):
  updates = _UPDATES if model.has_optimizer else None
  return value_coded.STORED[layout](_weights(model, form), updates)


def _options(model, source, target, layout):
  changes = source != target
  return Options(
    to=layout,
    scan_layers="keep"
    if source is not None and target is not None
    else str(target is not None).lower(),
    layer_pattern=model.pattern if changes else "",
    source_scan_axis=source,
    scan_axis=target,
  )


def _check(step: Path, expected) -> None:
  """Compares a step with arrays by item: names, shapes, types and bytes."""
  for item, arrays in expected.items():
    found = stores.read_item(step / item)
    assert found.keys() == arrays.keys()
    for name, values in arrays.items():
      np.testing.assert_array_equal(found[name], values, err_msg=name)
      assert found[name].dtype == values.dtype, name


def _convert(sources, tmp_path, name, source, target, *, single=False):
  """Converts between (layout, form) and checks the result; returns it."""
  model = value_coded.MODELS[name]
  run = sources(name, *source, single=single)
  options = _options(model, source[1], target[1], target[0])
  [step] = convert(run, tmp_path / "out", options).to_json()["steps"]
  directory = Path(step["target"])
  if model.has_optimizer:
    assert int(directory.name) == _NUMBER[target[0]]
  _check(directory, _stored(model, *target))
  return step


@pytest.mark.parametrize(
  ("source", "target"), list(itertools.permutations(_FORMS, 2))
)
@pytest.mark.parametrize("name", value_coded.MODELS)
def test_maxtext_in_any_form_becomes_any_other(
  sources, tmp_path, name, source, target
):
  step = _convert(
    sources, tmp_path, name, ("maxtext", source), ("maxtext", target)
  )
  # Unscanned layers are chunks of their own, which stacking only renames.
  is_rewritten = step["applied"]["num_bytes_rewritten"] > 0
  assert is_rewritten is (source is not None)


@pytest.mark.parametrize("layouts", list(itertools.permutations(_NUMBER)))
@pytest.mark.parametrize(
  ("source", "target"), list(itertools.product(_FORMS, repeat=2))
)
def test_layout_and_form_change_together(
  sources, tmp_path, layouts, source, target
):
  there, here = zip(layouts, (source, target), strict=True)
  _convert(sources, tmp_path, "flat", there, here)


@pytest.mark.parametrize(
  ("source", "target"), list(itertools.permutations(_FORMS, 2))
)
def test_tunix_in_any_form_becomes_any_other(sources, tmp_path, source, target):
  _convert(sources, tmp_path, "flat", ("tunix", source), ("tunix", target))


@pytest.mark.parametrize("layouts", list(itertools.permutations(_NUMBER)))
@pytest.mark.parametrize(("source", "target"), [(None, 1), (1, None)])
@pytest.mark.parametrize("name", [n for n in value_coded.MODELS if n != "flat"])
def test_every_pattern_in_both_layouts(
  sources, tmp_path, name, layouts, source, target
):
  there, here = zip(layouts, (source, target), strict=True)
  _convert(sources, tmp_path, name, there, here)


@pytest.mark.parametrize("target", _FORMS)
@pytest.mark.parametrize("source", [0, 1, 2])
@pytest.mark.parametrize("name", ["flat", "gemma4"])
def test_chunks_of_single_layers_are_never_rewritten(
  sources, tmp_path, name, source, target
):
  """Both ways give the same arrays; the cheaper one is taken."""
  step = _convert(
    sources,
    tmp_path,
    name,
    ("maxtext", source),
    ("maxtext", target),
    single=True,
  )
  assert step["applied"]["num_bytes_rewritten"] == 0
  assert {leaf["way"] for leaf in step["leaves"] if "way" in leaf} == {
    "re-keyed"
  }
