"""Which steps belong together."""

import pytest

from relayout.comparison.step_pairs import Numbered, pair_steps


def _steps(*pairs):
  """Returns steps that MaxText would number by one less."""
  return [
    Numbered(number, updates, _in_maxtext(number, updates))
    for number, updates in pairs
  ]


def _in_maxtext(number, updates):
  found = number if updates is None else updates
  return None if found is None else max(found - 1, 0)


@pytest.mark.parametrize(
  ("sources", "targets", "expected"),
  [
    pytest.param(
      _steps((2, 2), (4, 4)),
      _steps((1, 2), (3, 4)),
      [(0, 0), (1, 1)],
      id="by updates",
    ),
    pytest.param(
      _steps((4, 8), (8, 4)),
      _steps((3, 4), (7, 8)),
      [(0, 1), (1, 0)],
      id="updates go before numbers",
    ),
    pytest.param(
      _steps((4, 9)), _steps((17, 3)), [(0, 0)], id="one on each side"
    ),
    pytest.param(
      _steps((2, 2), (3, 3)),
      _steps((1, None), (2, None)),
      [(0, 0), (1, 1)],
      id="weights only, numbered as MaxText does",
    ),
    pytest.param(
      _steps((2, 2), (3, 3)),
      _steps((2, None), (3, None)),
      [(0, 0), (1, 1)],
      id="weights only, numbers kept",
    ),
    pytest.param(
      _steps((0, 0), (5, 5)),
      _steps((0, None), (4, None)),
      [(0, 0), (1, 1)],
      id="0 stays 0",
    ),
    pytest.param(
      _steps((2, None), (4, None)),
      _steps((1, None), (3, None)),
      [(0, 0), (1, 1)],
      id="no counter on either side",
    ),
    pytest.param(
      _steps((2, 2), (4, 4)),
      _steps((1, 2), (3, 5)),
      [(0, 0), (1, 1)],
      id="a wrong step leaf falls back on the number",
    ),
    pytest.param(
      _steps((2, 2), (4, 4)), _steps((3, 4)), [(1, 0)], id="source left over"
    ),
    pytest.param(
      _steps((4, 4)), _steps((3, 4), (9, 10)), [(0, 0)], id="target left over"
    ),
    pytest.param([], _steps((1, 1)), [], id="nothing to pair"),
  ],
)
def test_pairs(sources, targets, expected):
  assert pair_steps(sources, targets) == expected
