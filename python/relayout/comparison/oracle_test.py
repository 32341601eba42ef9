"""What TensorStore finds in an item, also if hosts never merged theirs."""

import numpy as np
import pytest

from relayout.comparison.oracle import open_oracle
from relayout.comparison.oracle_store import open_oracle_store
from relayout.errors import CorruptCheckpointError
from tests.support import stores

_VALUES = np.arange(60, dtype=np.float32).reshape(10, 6)


def _write(directory):
  stores.write_split_item(
    directory,
    {"a.b": _VALUES, "a.c": _VALUES + 1},
    chunks={"a.b": (2, 3), "a.c": (10, 6)},
  )


def test_parts_of_several_hosts_are_read_together(tmp_path):
  _write(tmp_path)
  oracle = open_oracle(tmp_path)
  assert len(oracle.arrays["a.b"].databases) == 2
  assert oracle.arrays["a.b"].num_chunks == 10
  assert oracle.arrays["a.b"].formats == (2,)
  found = oracle.open("a.b").read().result()
  assert found.tobytes() == _VALUES.tobytes()


def test_an_array_of_one_host_needs_no_other(tmp_path):
  _write(tmp_path)
  oracle = open_oracle(tmp_path)
  assert len(oracle.arrays["a.c"].databases) == 1
  found = oracle.open("a.c").read().result()
  assert found.tobytes() == (_VALUES + 1).tobytes()


def test_small_values_come_from_any_host(tmp_path):
  _write(tmp_path)
  store = open_oracle_store(open_oracle(tmp_path))
  array = store.arrays["a.b"]
  assert store.read_chunk(array, "0.0") is not None
  assert store.read_chunk(array, "1.0") is not None
  assert store.read_chunk(array, "9.9") is None


def test_a_chunk_of_two_hosts_is_refused(tmp_path):
  _write(tmp_path)
  stores.overwrite_key(tmp_path / "ocdbt.process_1", "a.b/0.0", b"x")
  with pytest.raises(CorruptCheckpointError, match="two databases"):
    open_oracle(tmp_path).open("a.b")
