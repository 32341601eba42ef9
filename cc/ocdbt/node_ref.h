#ifndef RELAYOUT_CC_OCDBT_NODE_REF_H_
#define RELAYOUT_CC_OCDBT_NODE_REF_H_

/// \file
/// References to B+tree nodes and their columns, as interior nodes and versions
/// have them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {

/// Sums over a subtree.  What several paths reach counts several times.
struct NodeStatistics {
  uint64_t num_keys = 0;
  uint64_t num_tree_bytes = 0;  ///< of the encoded nodes, this one included
  uint64_t num_indirect_value_bytes = 0;

  /// Sums stop at the largest number.
  NodeStatistics& operator+=(const NodeStatistics& other);
  bool operator==(const NodeStatistics&) const = default;
};

struct NodeRef {
  DataRef location;
  NodeStatistics statistics;

  bool operator==(const NodeRef&) const = default;
};

/// Reads the columns of `count` data references.  Files are places in a table
/// of `num_files`.
Result<std::vector<DataRef>> ReadDataRefs(ByteReader& reader, size_t count,
                                          size_t num_files);

/// Reads the columns of `count` node references.
Result<std::vector<NodeRef>> ReadNodeRefs(ByteReader& reader, size_t count,
                                          size_t num_files);

/// Append the columns, with file places from `table`.
void AppendDataRefs(std::string& out, std::span<const DataRef> refs,
                    const DataFileTableEncoder& table);
void AppendNodeRefs(std::string& out, std::span<const NodeRef> refs,
                    const DataFileTableEncoder& table);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_NODE_REF_H_
