"""The harness itself: its comparison and its children can fail."""

import dataclasses
import os
import time

import numpy as np
import pytest
from harness import compare, forks, tunix_source


def small_state():
  rng = np.random.default_rng(0)
  weights, mu, nu = (
    {
      "a.kernel": rng.random((2, 3), np.float32),
      "b": np.float32(i) * np.ones(()),
    }
    for i in range(3)
  )
  return tunix_source.TrainState(
    weights=weights,
    mu=mu,
    nu=nu,
    count=4,
    schedule_count=4,
    step=4,
    aux={"key": np.arange(4, dtype=np.uint32)},
  )


def different_leaves(**changes):
  state = small_state()
  other = dataclasses.replace(state, **changes)
  lines = compare.differences(compare.digests(state), compare.digests(other))
  return [line.partition(":")[0] for line in lines]


class TestCompare:
  def test_equal(self):
    assert different_leaves() == []

  def test_swapped_moments(self):
    state = small_state()
    assert different_leaves(mu=state.nu, nu=state.mu) == [
      "mu/a.kernel",
      "mu/b",
      "nu/a.kernel",
      "nu/b",
    ]

  def test_one_bit(self):
    mu = small_state().mu
    mu["a.kernel"].view(np.uint32)[0, 0] ^= 1
    assert different_leaves(mu=mu) == ["mu/a.kernel"]

  def test_negative_zero(self):
    mu = small_state().mu
    mu["b"] = np.zeros((), np.float32)
    nu = {**mu, "b": -mu["b"]}
    want = dataclasses.replace(small_state(), mu=mu)
    got = dataclasses.replace(small_state(), mu=nu)
    lines = compare.differences(compare.digests(want), compare.digests(got))
    assert [line.partition(":")[0] for line in lines] == ["mu/b"]

  def test_transposed(self):
    weights = small_state().weights
    weights["a.kernel"] = weights["a.kernel"].reshape(3, 2)
    assert different_leaves(weights=weights) == ["weights/a.kernel"]

  def test_dtype(self):
    aux = {"key": small_state().aux["key"].view(np.int32)}
    assert different_leaves(aux=aux) == ["aux/key"]

  @pytest.mark.parametrize("field", ["count", "schedule_count", "step"])
  def test_counts(self, field):
    assert different_leaves(**{field: 3}) == [field]

  def test_missing_and_extra(self):
    assert different_leaves(aux={"other": np.zeros(1)}) == [
      "aux/key",
      "aux/other",
    ]


class TestStacked:
  def test_layers_are_stacked_in_numerical_order(self):
    state = small_state()
    layers = {
      f"decoder.layers_{i}.kernel": np.full((3, 2), i, np.float32)
      for i in [10, 2, *range(2), *range(3, 10)]
    }
    got = tunix_source.stacked(dataclasses.replace(state, mu=layers)).mu
    assert list(got) == ["decoder.layers.kernel"]
    assert got["decoder.layers.kernel"].shape == (3, 11, 2)
    assert got["decoder.layers.kernel"][0, :, 0].tolist() == list(range(11))

  def test_vectors_get_the_layer_axis_last(self):
    state = small_state()
    layers = {f"layers_{i}.scale": np.full(3, i) for i in range(2)}
    got = tunix_source.stacked(dataclasses.replace(state, mu=layers)).mu
    assert got["layers.scale"].tolist() == [[0, 1]] * 3


class TestForkPool:
  @pytest.fixture
  def pool(self, tmp_path):
    pool = forks.ForkPool(tmp_path, max_running=2, env={"OF_POOL": "1"})
    yield pool
    pool.close()

  def test_result(self, pool):
    for i in range(5):
      pool.submit(str(i), lambda directory: (directory.name, os.getpid()))
    results = [pool.result(str(i)) for i in range(5)]
    assert [name for name, _ in results] == ["0", "1", "2", "3", "4"]
    assert len({*(pid for _, pid in results), os.getpid()}) == 6

  def test_place_and_environment(self, pool):
    def look(directory):
      here = os.path.realpath(directory)
      return (
        os.path.realpath(os.getcwd()) == here,
        os.path.realpath(os.environ["HOME"]) == here,
        os.environ["OF_POOL"],
        os.environ["OF_JOB"],
      )

    pool.submit("look", look, env={"OF_JOB": "2"})
    assert pool.result("look") == (True, True, "1", "2")
    assert "OF_JOB" not in os.environ

  def test_exception_is_reported_with_the_log(self, pool):
    def fail(directory):
      os.write(1, b"some output\n")
      raise ValueError("wrong shape")

    pool.submit("fail", fail)
    with pytest.raises(forks.ChildError, match=r"(?s)wrong shape.*some output"):
      pool.result("fail")

  def test_death_is_reported(self, pool):
    pool.submit("die", lambda directory: os.kill(os.getpid(), 9))
    with pytest.raises(forks.ChildError, match="die died with wait status"):
      pool.result("die")

  def test_time_out_is_reported(self, pool):
    pool.submit("sleep", lambda directory: time.sleep(60), timeout_seconds=0.3)
    with pytest.raises(forks.ChildError, match="ran longer than 0 s"):
      pool.result("sleep")
