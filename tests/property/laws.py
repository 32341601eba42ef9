"""What the property tests share."""

import contextlib
import pathlib
import tempfile

import hypothesis
from hypothesis import strategies as st

from tests.native import oracle
from tests.property import databases

SETTINGS = hypothesis.settings(
  max_examples=60,
  deadline=None,
  database=None,
  suppress_health_check=[hypothesis.HealthCheck.too_slow],
)

OPTIONS = st.fixed_dictionaries(
  {
    "max_inline_value_bytes": st.sampled_from([0, 1, 30, 100, 2000]),
    "max_decoded_node_bytes": st.sampled_from([3000, 10000, 1 << 20]),
    "zstd_level": st.sampled_from([None, 0, 3]),
  }
)


@contextlib.contextmanager
def scratch():
  with tempfile.TemporaryDirectory() as name:
    yield pathlib.Path(name)


def metadata_of(spec):
  """Returns the metadata key and bytes that TensorStore writes for `spec`."""
  with scratch() as directory:
    databases.write_array(directory, spec)
    name = spec.name.encode()
    return next(
      (key.decode(), value)
      for key, value in oracle.read_all(directory).items()
      if key in (name + b"/.zarray", name + b"/zarr.json")
    )
