"""Databases of several nodes: TensorStore reads each that we wrote."""

import numpy as np
import pytest
import tensorstore as ts

from relayout.convert.options import Options
from relayout.convert.run import convert
from relayout.verify import verify
from tests.conformance.nodes import dump_nodes
from tests.support import stores

_LAYERS = 3000
_STACK = Options(scan_layers="true", layer_pattern="flat")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
  """A step of thousands of small arrays, whose values are their numbers."""
  step = tmp_path_factory.mktemp("source") / "4"
  item = step / "model_params"
  norm = {"decoder.norm.value": np.float32(0)}
  stores.write_item(item, norm, max_decoded_node_bytes=3000)
  spec = stores.kvstore(item)
  metadata = ts.KvStore.open(spec).result()["decoder.norm.value/.zarray"]
  with ts.Transaction() as transaction:
    store = ts.KvStore.open(spec).result().with_transaction(transaction)
    for layer in range(_LAYERS):
      name = f"decoder.layers_{layer}.a_module_of_a_long_name.scale.value"
      store[f"{name}/.zarray"] = _uncompressed(metadata)
      store[f"{name}/0"] = np.float32(layer).tobytes()
  return step


def _uncompressed(metadata):
  return metadata.replace(b'{"id":"zstd","level":1}', b"null")


@pytest.mark.parametrize(
  "options", [Options(), _STACK], ids=["kept", "stacked"]
)
def test_many_nodes(source, tmp_path, options):
  [step] = convert(source, tmp_path / "out", options).to_json()["steps"]
  item = tmp_path / "out" / "3" / "items"
  nodes = [node for _, node in dump_nodes(item)]
  leaves = [node for node in nodes if node["height"] == 0]
  if options is not _STACK:
    assert len(leaves) > 1
    assert nodes[0]["height"] > 0
  num_keys = sum(len(node["entries"]) for node in leaves)
  listed = ts.KvStore.open(stores.kvstore(item)).result().list().result()
  assert num_keys == len(set(listed)) == step["applied"]["num_keys"]
  _check_values(item, stacked=options is _STACK)
  assert verify(source, tmp_path / "out").is_ok


def _check_values(item, *, stacked):
  prefix = "params.params.decoder"
  rest = "a_module_of_a_long_name.scale"
  if stacked:
    found = stores.read_item(item)[f"{prefix}.layers.{rest}"]
    assert found.tolist() == list(range(_LAYERS))
    return
  store = ts.KvStore.open(stores.kvstore(item)).result()
  for layer in range(_LAYERS):
    value = store[f"{prefix}.layers_{layer}.{rest}/0"]
    assert np.frombuffer(value, np.float32) == layer
