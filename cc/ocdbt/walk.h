#ifndef RELAYOUT_CC_OCDBT_WALK_H_
#define RELAYOUT_CC_OCDBT_WALK_H_

/// \file
/// Reads a whole B+tree, one level after the other, the nodes of a level in
/// parallel.
///
/// Each node must be one lower than its parent, so no chain of references is
/// longer than the root is high.  The number of keys that a parent tells is
/// checked at every level, so a tree whose nodes refer to the same children
/// over and over can't grow beyond the limit that the root was checked for.

#include <cstdint>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/version_tree.h"

namespace relayout::ocdbt {

/// Most keys of one version, and most bytes of whole keys and inline values.
inline constexpr uint64_t kMaxKeys = uint64_t{1} << 26;
inline constexpr uint64_t kMaxContentBytes = uint64_t{8} << 30;

/// Returns the leaves of `version` in key order; keys strictly increase from
/// one leaf to the next.  `root_files` is what its root refers to.  A version
/// without a root has no leaves.
///
/// Errors: `kCorrupt` naming file and node; `kUnsupported` beyond a limit;
/// `kSystem`.  The first in key order of the highest level, whatever the number
/// of threads.
Result<std::vector<BtreeNode>> ReadLeaves(
    DataFiles& files, const Version& version,
    const std::vector<DataFileId>& root_files, int num_threads);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_WALK_H_
