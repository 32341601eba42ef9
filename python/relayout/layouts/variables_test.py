"""Names of leaves that are no weights."""

import pytest

from relayout.layouts import variables


@pytest.mark.parametrize(
  ("path", "expected"),
  [
    ("decoder.layers.self_attention.rngs.dropout.key", True),
    ("decoder.dropout.rngs.count", True),
    ("decoder.rngs.params.key", True),
    # An attention module has a child called `key`, with a kernel.
    ("decoder.layers.self_attention.key.kernel", False),
    ("decoder.count", False),
  ],
)
def test_is_rng(path, expected):
  assert variables.is_rng(tuple(path.split("."))) is expected


@pytest.mark.parametrize(
  ("path", "variable"),
  [
    (
      "decoder.moe_layers.DeepSeekMoeBlock_0.MoeBlock_0.gate.bias",
      "MoEBiasVar",
    ),
    ("decoder.layers_4.mlp.MoeBlock_0.gate.bias", "MoEBiasVar"),
    ("decoder.layers_0.mlp.MoeBlock_0.tid2eid", "Tid2EidVar"),
    ("decoder.moe_layers.DeepSeekMoeBlock_0.MoeBlock_0.gate.kernel", None),
    # gpt-oss keeps a bias of that name in an nnx.Param.
    ("decoder.layers.layers_0.GptOssMlp.gate.bias", None),
  ],
)
def test_non_weights_by_table(path, variable):
  entry = variables.non_weight(tuple(path.split(".")))
  assert (entry.variable if entry else None) == variable
