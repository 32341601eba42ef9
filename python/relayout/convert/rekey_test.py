"""A plan speaks of arrays: its size does not depend on the chunks."""

import json

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert import apply, rekey
from relayout.convert.options import Options
from relayout.convert.plan import Derived
from relayout.convert.planner import plan_step
from relayout.convert.source import read_step
from relayout.metadata.checkpoint import find_checkpoint
from tests.support import golden, stores

_KEEP = Options()
_FLAT = Options(scan_layers="true", layer_pattern="flat")
_LAYERS = 3
_GRID = (200, 100)
_BIG = "decoder.embedding.value"


def _layer(number):
  return f"decoder.layers_{number}.wi.value"


@pytest.fixture(scope="module")
def many_chunks(tmp_path_factory):
  """A step of AdamW, of arrays of 20,000 chunks of one element."""
  root = tmp_path_factory.mktemp("in")
  names = [_BIG, *map(_layer, range(_LAYERS))]
  _write_chunks(root / "4/model_params", names)
  moments = [f"opt_state.0.{slot}.{x}" for slot in ("mu", "nu") for x in names]
  counters = {
    "opt_state.0.count.value": np.int32(4),
    "step.value": np.uint32(4),
  }
  stores.write_item(root / "4/optimizer_state", counters)
  _write_chunks(root / "4/optimizer_state", moments)
  return root


def _write_chunks(item, names):
  metadata = {
    "zarr_format": 2,
    "shape": list(_GRID),
    "chunks": [1, 1],
    "dtype": "<f4",
    "compressor": None,
    "fill_value": None,
    "filters": None,
    "order": "C",
  }
  with ts.Transaction() as transaction:
    store = ts.KvStore.open(stores.kvstore(item)).result()
    store = store.with_transaction(transaction)
    for name in names:
      store[f"{name}/.zarray"] = json.dumps(metadata).encode()
      for row, column in np.ndindex(_GRID):
        store[f"{name}/{row}.{column}"] = bytes(4)


def _plan(path, options):
  step = find_checkpoint(path).steps[-1]
  return plan_step(read_step(step, params_only=options.params_only), options)


def _requests(plan):
  return [(item, rekey.make_request(item, {})) for item in plan.targets]


def _check_literals(item, request):
  """Checks that literals are one metadata an array, and the scalars."""
  arrays = {
    f"{leaf.name}/{leaf.spec.metadata_key}" for leaf in item.leaves if leaf.spec
  }
  scalars = {
    f"{leaf.name}/{'0' if leaf.spec.zarr_format == 2 else 'c'}"
    for leaf in item.leaves
    if leaf.spec and isinstance(leaf.origin, Derived)
  }
  keys = [key for key, _ in request.literals]
  assert len(keys) == len(arrays) + len(scalars)
  assert set(keys) == arrays | scalars


@pytest.mark.parametrize("options", [_KEEP, _FLAT], ids=["kept", "stacked"])
def test_one_move_an_array_whatever_its_chunks(many_chunks, options):
  plan = _plan(many_chunks, options)
  item, request = _requests(plan)[0]
  assert item.name == "items"
  moved = [(move.listing, move.source_array) for move in request.moves]
  # The embedding and the layers, each with two moments; the count, which is
  # the schedule's position, too.
  assert len(moved) == 3 * (1 + _LAYERS) + 2
  assert len(set(moved)) == len(moved) - 1
  _check_literals(item, request)
  chunks = sum(
    entry.num_chunks
    for listing in request.listings
    for entry in listing.arrays()
  )
  assert chunks > 20_000 * (len(request.moves) - 2) * 0.9
  assert [name for _, name in request.drops] == ["step.value"]
  # The chunks appear only when the native core expands the moves.
  keys = apply.prepare(plan, 1 << 30).keys[0]
  assert keys.plan.num_keys == (chunks - 1 + 1 + len(request.literals))


def test_a_stack_takes_one_move_a_layer(many_chunks):
  item, request = _requests(_plan(many_chunks, _FLAT))[0]
  stacks = [
    leaf
    for leaf in item.leaves
    if not isinstance(leaf.origin, Derived) and leaf.origin.verb == "stacked"
  ]
  assert len(stacks) == 3
  for leaf in stacks:
    moves = [m for m in request.moves if m.target_array == leaf.name]
    sources = [m.source_array for m in moves]
    assert sources == [slot.source.leaf.name for slot in leaf.origin.slots]
    assert len(sources) == _LAYERS


@pytest.mark.parametrize(
  ("name", "options"),
  [(name, _KEEP) for name in golden.TUNIX]
  + [("sft_unscan", _FLAT), ("sft_unscan_sharded", _FLAT)],
)
def test_golden_checkpoints(name, options):
  """Every source array is in one of the target's items, and once."""
  plan = _plan(golden.checkpoints(name), options)
  moved = []
  for item, request in _requests(plan):
    _check_literals(item, request)
    names = [(m.listing, m.source_array) for m in request.moves]
    stored = [
      (number, entry.name)
      for number, listing in enumerate(request.listings)
      for entry in listing.arrays()
    ]
    assert sorted({*names, *request.drops}) == sorted(stored)
    moved += [
      (request.listings[number].directory, name) for number, name in names
    ]
  stored = [
    (listing.directory, entry.name)
    for item in plan.items
    for listing in item.listings
    for entry in listing.arrays()
  ]
  assert sorted(set(moved)) == sorted(stored)
