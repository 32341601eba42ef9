#include "cc/rekey/tree_writer.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/node_sizer.h"

namespace relayout::rekey {
namespace {

using ocdbt::EncodedNode;
using ocdbt::Entry;
using ocdbt::InteriorEntry;

/// Size to cut nodes at where the limit allows more: a reader that wants one
/// array then reads little else, and encoding can be shared out.
constexpr uint64_t kPreferredNodeBytes = 1 << 20;

/// Nodes that are encoded before they are written; bounds the memory.
constexpr size_t kBatchNodes = 32;

/// Fewest entries that a node must have room for: with fewer the level above
/// would not be smaller.
template <typename T>
constexpr size_t kMinEntries = 1;
template <>
constexpr size_t kMinEntries<InteriorEntry> = 2;

/// Returns the number of `entries` in their first node.
template <typename T>
Result<size_t> CutNode(std::span<const T> entries, ocdbt::NodeSizer& sizer,
                       uint64_t max_node_bytes) {
  const size_t num_required = std::min(entries.size(), kMinEntries<T>);
  const uint64_t preferred = std::min(max_node_bytes, kPreferredNodeBytes);
  const size_t count = sizer.CountFitting(entries, preferred);
  if (count >= num_required) return count;
  // The few that are so large share a node of their own.
  const auto required = entries.first(num_required);
  if (sizer.CountFitting(required, max_node_bytes) == num_required) {
    return num_required;
  }
  return InvalidArgument(StrCat(num_required == 1 ? "the entry" : "two entries",
                                " at key ", Quote(entries.front().key),
                                " exceed a node's limit of ", max_node_bytes,
                                " bytes"));
}

/// Cuts the entries of one level into those of each node.
template <typename T>
Result<std::vector<std::span<const T>>> CutLevel(std::span<const T> entries,
                                                 const TreeTarget& target) {
  ocdbt::NodeSizer sizer(target.files);
  std::vector<std::span<const T>> nodes;
  while (!entries.empty()) {
    RELAYOUT_ASSIGN_OR_RETURN(
        const size_t count,
        CutNode(entries, sizer, target.config.max_decoded_node_bytes));
    nodes.push_back(entries.first(count));
    entries = entries.subspan(count);
  }
  return nodes;
}

class TreeWriter {
 public:
  TreeWriter(const TreeTarget& target, int num_threads)
      : target_(target), num_threads_(num_threads) {}

  Result<WrittenTree> Write(std::span<const Entry> entries) {
    RELAYOUT_ASSIGN_OR_RETURN(std::vector<InteriorEntry> level,
                              WriteLevel(entries));
    while (level.size() > 1) {
      ++tree_.height;
      RELAYOUT_ASSIGN_OR_RETURN(
          level, WriteLevel(std::span<const InteriorEntry>(level)));
    }
    tree_.root = level.front().node;
    return tree_;
  }

 private:
  /// Writes the nodes of one level and returns the entries that refer to them.
  template <typename T>
  Result<std::vector<InteriorEntry>> WriteLevel(std::span<const T> entries) {
    RELAYOUT_ASSIGN_OR_RETURN(const auto nodes, CutLevel(entries, target_));
    std::vector<InteriorEntry> parents;
    parents.reserve(nodes.size());
    for (size_t begin = 0; begin < nodes.size(); begin += kBatchNodes) {
      const size_t count = std::min(kBatchNodes, nodes.size() - begin);
      const auto batch = std::span(nodes).subspan(begin, count);
      RELAYOUT_ASSIGN_OR_RETURN(const auto encoded,
                                EncodeBatch(batch, nodes.size() == 1));
      for (size_t i = 0; i < count; ++i) {
        RELAYOUT_ASSIGN_OR_RETURN(parents.emplace_back(),
                                  WriteNode(batch[i].front().key, encoded[i]));
      }
    }
    return parents;
  }

  template <typename T>
  Result<std::vector<EncodedNode>> EncodeBatch(
      std::span<const std::span<const T>> nodes, bool is_root) const {
    std::vector<EncodedNode> encoded(nodes.size());
    RELAYOUT_RETURN_IF_ERROR(
        ParallelFor(nodes.size(), num_threads_, [&](size_t i) -> Status {
          RELAYOUT_ASSIGN_OR_RETURN(encoded[i], Encode(nodes[i], is_root));
          return {};
        }));
    return encoded;
  }

  Result<EncodedNode> Encode(std::span<const Entry> entries,
                             bool is_root) const {
    return ocdbt::EncodeLeafNode(entries, target_.files, target_.config,
                                 is_root);
  }

  Result<EncodedNode> Encode(std::span<const InteriorEntry> children,
                             bool is_root) const {
    return ocdbt::EncodeInteriorNode(tree_.height, children, target_.files,
                                     target_.config, is_root);
  }

  /// Writes a node whose first key is `key`.
  Result<InteriorEntry> WriteNode(std::string_view key,
                                  const EncodedNode& node) {
    const ocdbt::DataRef location = {.file = target_.node_file,
                                     .offset = target_.writer.num_bytes(),
                                     .length = node.record.size()};
    RELAYOUT_RETURN_IF_ERROR(target_.writer.Append(node.record));
    ++tree_.num_nodes;
    return InteriorEntry{
        .key = key,
        .subtree_common_prefix_length = node.subtree_common_prefix_length,
        .node = {.location = location, .statistics = node.statistics}};
  }

  const TreeTarget target_;
  const int num_threads_;
  WrittenTree tree_;
};

}  // namespace

Result<WrittenTree> WriteTree(std::span<const Entry> entries,
                              const TreeTarget& target, int num_threads) {
  return TreeWriter(target, num_threads).Write(entries);
}

}  // namespace relayout::rekey
