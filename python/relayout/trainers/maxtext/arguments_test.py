"""A configuration can be named as MaxText names it."""

import pytest

from relayout.errors import OptionError
from relayout.trainers.maxtext.arguments import with_config_path


@pytest.fixture
def configs(tmp_path):
  for name in ("base.yml", "post_train/sft.yml"):
    path = tmp_path / "configs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
  return tmp_path / "configs"


@pytest.mark.parametrize(
  ("name", "path"),
  [("sft.yml", "post_train/sft.yml"), ("base.yml", "base.yml")],
)
def test_a_bare_name_is_one_of_maxtexts(configs, name, path):
  argv = with_config_path(["train", name, "steps=1"], configs)
  assert argv == ["train", str(configs / path), "steps=1"]


def test_a_path_stays(configs):
  argv = ["train", "src/maxtext/configs/base.yml", "steps=1"]
  assert with_config_path(argv, configs) == argv


def test_a_file_stays(configs, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "sft.yml").touch()
  assert with_config_path(["train", "sft.yml"], configs)[1] == "sft.yml"


def test_an_unknown_name_says_where_was_looked(configs):
  with pytest.raises(OptionError, match=r"x\.yml: neither a file.*post_train"):
    with_config_path(["train", "x.yml"], configs)


@pytest.mark.parametrize("rest", [[], ["steps=1"]])
def test_no_configuration_is_an_error(configs, rest):
  with pytest.raises(OptionError, match=r"usage: train CONFIG\.yml"):
    with_config_path(["bin/train", *rest], configs)
