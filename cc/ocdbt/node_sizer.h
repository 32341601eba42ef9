#ifndef RELAYOUT_CC_OCDBT_NODE_SIZER_H_
#define RELAYOUT_CC_OCDBT_NODE_SIZER_H_

/// \file
/// Tells a writer where one node ends and the next begins.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"

namespace relayout::ocdbt {

/// Bounds the size of the body of nodes, from above and closely: only the
/// prefixes that a data file table or a node that is no root leaves out are
/// counted though they take no space.
class NodeSizer {
 public:
  /// References are to `files`, which must outlive the sizer.
  explicit NodeSizer(std::span<const DataFileId> files);

  /// Returns how many of the first `entries` one node of at most
  /// `max_num_bytes` holds; 0 when it doesn't even hold the first.
  ///
  /// An interior node of a single child does not make a tree narrower; a caller
  /// must refuse a limit that leaves room for no more.
  size_t CountFitting(std::span<const Entry> entries, uint64_t max_num_bytes);
  size_t CountFitting(std::span<const InteriorEntry> children,
                      uint64_t max_num_bytes);

 private:
  template <typename T>
  size_t Count(std::span<const T> entries, uint64_t max_num_bytes);

  uint64_t ContentSize(const Entry& entry);
  uint64_t ContentSize(const InteriorEntry& child);

  /// Returns the size that a reference to `file` adds, its table row included
  /// if it is the first of this node.
  uint64_t FileSize(uint32_t file);

  std::span<const DataFileId> files_;
  /// The node that last referred to each file.
  std::vector<uint64_t> last_node_;
  uint64_t node_ = 0;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_NODE_SIZER_H_
