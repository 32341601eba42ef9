#include "cc/ocdbt/walk.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/node_ref.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/version_tree.h"

namespace relayout::ocdbt {
namespace {

/// A node to read, with what its parent says of it.
struct Task {
  const DataFileId* file;
  NodeRef node;
  uint8_t height;
  std::string_view key_prefix;
  std::string_view inclusive_min;
  /// None for the last node of a level.
  std::optional<std::string_view> exclusive_max;
};

/// The nodes of one height, in key order.
using Level = std::vector<BtreeNode>;

std::string Describe(const Task& task) {
  return StrCat("data file ", Quote(task.file->path()), ": node at [",
                task.node.location.offset, ", +", task.node.location.length,
                ")");
}

Result<ByteView> ReadRecord(DataFiles& files, const Task& task) {
  const DataRef& location = task.node.location;
  if (location.length > kMaxRecordBytes) {
    return Corrupt(StrCat("length exceeds the limit of ", kMaxRecordBytes));
  }
  RELAYOUT_ASSIGN_OR_RETURN(const auto reader, files.Open(task.file->path()));
  return reader->Read(location.offset, location.length);
}

template <typename T>
Status CheckKeyRange(const std::vector<T>& entries, const Task& task) {
  if (entries.front().key < task.inclusive_min) {
    return Corrupt(StrCat("first key ", Quote(entries.front().key),
                          " is before ", Quote(task.inclusive_min),
                          ", where its parent says it begins"));
  }
  if (task.exclusive_max.has_value() &&
      entries.back().key >= *task.exclusive_max) {
    return Corrupt(StrCat("last key ", Quote(entries.back().key),
                          " is not before ", Quote(*task.exclusive_max),
                          ", where the next node begins"));
  }
  return {};
}

Status CheckNumKeys(uint64_t num_keys, const Task& task) {
  if (num_keys == task.node.statistics.num_keys) return {};
  return Corrupt(StrCat("it has ", num_keys, " keys, but its parent says ",
                        task.node.statistics.num_keys));
}

Status CheckLeaf(const BtreeNode& leaf, const Task& task) {
  RELAYOUT_RETURN_IF_ERROR(CheckKeyRange(leaf.entries, task));
  return CheckNumKeys(leaf.entries.size(), task);
}

Status CheckInterior(const BtreeNode& node, const Task& task) {
  RELAYOUT_RETURN_IF_ERROR(CheckKeyRange(node.children, task));
  NodeStatistics sum;
  for (const InteriorEntry& child : node.children) {
    if (child.node.statistics.num_keys == 0) {
      return Corrupt(
          StrCat("child with key ", Quote(child.key), " has no keys"));
    }
    sum += child.node.statistics;
  }
  return CheckNumKeys(sum.num_keys, task);
}

Status CheckNode(const BtreeNode& node, const Task& task) {
  if (node.height != task.height) {
    return Corrupt(StrCat("height is ", node.height, ", not ", task.height));
  }
  return node.height == 0 ? CheckLeaf(node, task) : CheckInterior(node, task);
}

Result<BtreeNode> ReadNode(DataFiles& files, const Task& task) {
  RELAYOUT_ASSIGN_OR_RETURN(const ByteView record, ReadRecord(files, task));
  RELAYOUT_ASSIGN_OR_RETURN(
      BtreeNode node,
      DecodeBtreeNode(record, task.file->base_path, task.key_prefix));
  RELAYOUT_RETURN_IF_ERROR(CheckNode(node, task));
  return node;
}

/// Counts what the leaves of a tree take in memory.
class ContentLimit {
 public:
  Status Add(uint64_t num_bytes) {
    const uint64_t before =
        num_bytes_.fetch_add(num_bytes, std::memory_order_relaxed);
    if (before + num_bytes <= kMaxContentBytes) return {};
    return Unsupported(StrCat("keys and inline values exceed the limit of ",
                              kMaxContentBytes, " bytes"));
  }

 private:
  std::atomic<uint64_t> num_bytes_ = 0;
};

Result<Level> ReadLevel(DataFiles& files, const std::vector<Task>& tasks,
                        ContentLimit& limit, int num_threads) {
  Level level(tasks.size());
  RELAYOUT_RETURN_IF_ERROR(
      ParallelFor(tasks.size(), num_threads, [&](size_t i) -> Status {
        auto node = ReadNode(files, tasks[i]);
        if (!node.has_value()) {
          return InContext(std::move(node).error(), Describe(tasks[i]));
        }
        level[i] = *std::move(node);
        return limit.Add(level[i].num_content_bytes);
      }));
  return level;
}

void AppendChildTasks(const BtreeNode& node,
                      std::optional<std::string_view> exclusive_max,
                      std::vector<Task>& tasks) {
  for (size_t i = 0; i < node.children.size(); ++i) {
    const InteriorEntry& child = node.children[i];
    const bool is_last = i + 1 == node.children.size();
    tasks.push_back(
        {.file = &node.files[child.node.location.file],
         .node = child.node,
         .height = static_cast<uint8_t>(node.height - 1),
         .key_prefix = child.key.substr(0, child.subtree_common_prefix_length),
         .inclusive_min = child.key,
         .exclusive_max = is_last ? exclusive_max
                                  : std::optional(node.children[i + 1].key)});
  }
}

std::vector<Task> ChildTasks(const Level& level,
                             const std::vector<Task>& tasks) {
  std::vector<Task> children;
  for (size_t i = 0; i < level.size(); ++i) {
    AppendChildTasks(level[i], tasks[i].exclusive_max, children);
  }
  return children;
}

Status CheckRoot(const Version& version) {
  const uint64_t num_keys = version.root.statistics.num_keys;
  if (num_keys <= kMaxKeys) return {};
  return Unsupported(StrCat("generation ", version.generation, " has ",
                            num_keys, " keys, more than the limit of ",
                            kMaxKeys));
}

/// A level of fewer nodes may share them as it likes.
constexpr size_t kFreelySharedNodes = 1 << 16;

/// How often the nodes of a larger level may be referred to, on average.
constexpr size_t kMaxSharing = 16;

/// Refuses a level that refers to few nodes many times over: levels that
/// double would unfold a file of kilobytes to gigabytes.
Status CheckSharing(const std::vector<Task>& tasks) {
  if (tasks.size() <= kFreelySharedNodes) return {};
  std::set<std::pair<std::string, uint64_t>> distinct;
  for (const Task& task : tasks) {
    distinct.emplace(task.file->path(), task.node.location.offset);
  }
  if (tasks.size() / kMaxSharing <= distinct.size()) return {};
  return Corrupt(StrCat("the tree has ", tasks.size(), " nodes of height ",
                        tasks.front().height, ", which are only ",
                        distinct.size(), " nodes over and over"));
}

}  // namespace

Result<std::vector<BtreeNode>> ReadLeaves(
    DataFiles& files, const Version& version,
    const std::vector<DataFileId>& root_files, int num_threads) {
  if (version.root.location.is_missing()) return std::vector<BtreeNode>();
  RELAYOUT_RETURN_IF_ERROR(CheckRoot(version));
  std::vector<Task> tasks = {{.file = &root_files[version.root.location.file],
                              .node = version.root,
                              .height = version.root_height,
                              .key_prefix = "",
                              .inclusive_min = "",
                              .exclusive_max = std::nullopt}};
  ContentLimit limit;
  // Tasks look into the levels above.
  std::vector<Level> levels;
  while (true) {
    RELAYOUT_RETURN_IF_ERROR(CheckSharing(tasks));
    RELAYOUT_ASSIGN_OR_RETURN(Level level,
                              ReadLevel(files, tasks, limit, num_threads));
    if (tasks.front().height == 0) return level;
    levels.push_back(std::move(level));
    tasks = ChildTasks(levels.back(), tasks);
  }
}

}  // namespace relayout::ocdbt
