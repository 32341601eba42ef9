"""TensorStore's view of OCDBT databases."""

import dataclasses

import tensorstore as ts


def open_kvstore(directory, **config):
  """Opens the database in `directory`, made with `config` if it is new."""
  spec = {"driver": "ocdbt", "base": f"file://{directory}/"}
  if config:
    spec["config"] = config
  return ts.KvStore.open(spec).result()


def read_all(directory):
  """Returns every key and value of a database."""
  kvstore = open_kvstore(directory)
  reads = {key: kvstore.read(key) for key in kvstore.list().result()}
  return {key: read.result().value for key, read in reads.items()}


@dataclasses.dataclass
class Tree:
  """What a walk through the nodes of a database found."""

  num_nodes: int = 0
  num_node_bytes: int = 0
  keys: list = dataclasses.field(default_factory=list)


def num_bytes_at(location):
  """Returns the length in a location such as `btreenode::d/x:5:100`."""
  return int(location.rsplit(":", 1)[1])


def walk(base, reference, height, prefix, tree):
  """Dumps a node and all below it, checking the rules of the format."""
  node = ts.ocdbt.dump(base, reference["location"]).result()
  assert node["height"] == height
  tree.num_nodes += 1
  tree.num_node_bytes += num_bytes_at(reference["location"])
  num_keys_before = len(tree.keys)
  num_node_bytes = num_bytes_at(reference["location"])
  num_indirect_bytes = 0
  for entry in node["entries"]:
    if height == 0:
      tree.keys.append(prefix + entry["key"])
      if "indirect_value" in entry:
        num_indirect_bytes += num_bytes_at(entry["indirect_value"])
      continue
    first = len(tree.keys)
    walk(base, entry, height - 1, prefix + entry["subtree_common_prefix"], tree)
    assert tree.keys[first] == prefix + entry["key"]
    num_node_bytes += entry["statistics"]["num_tree_bytes"]
    num_indirect_bytes += entry["statistics"]["num_indirect_value_bytes"]
  assert reference["statistics"] == {
    "num_keys": len(tree.keys) - num_keys_before,
    "num_tree_bytes": num_node_bytes,
    "num_indirect_value_bytes": num_indirect_bytes,
  }


def dump_tree(directory):
  """Reads every node of the newest version with `ts.ocdbt.dump`."""
  base = ts.KvStore.open(f"file://{directory}/").result()
  version = ts.ocdbt.dump(base).result()["versions"][-1]
  tree = Tree()
  if "location" in version["root"]:
    walk(base, version["root"], version["root_height"], b"", tree)
  assert tree.keys == sorted(set(tree.keys))
  return tree
