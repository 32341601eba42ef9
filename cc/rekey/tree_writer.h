#ifndef RELAYOUT_CC_REKEY_TREE_WRITER_H_
#define RELAYOUT_CC_REKEY_TREE_WRITER_H_

/// \file
/// Writes a whole B+tree at once, from the leaves up.
///
/// Where one node ends and the next begins depends on the entries alone, so the
/// nodes of a level can be encoded in parallel and the bytes are always the
/// same.

#include <cstdint>
#include <span>

#include "cc/base/result.h"
#include "cc/io/file_writer.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/node_ref.h"

namespace relayout::rekey {

struct WrittenTree {
  ocdbt::NodeRef root;
  uint8_t height = 0;  ///< of the root
  uint64_t num_nodes = 0;
};

/// Where the nodes of a tree go, and what they refer to.
struct TreeTarget {
  /// Data files that entries refer to by index.
  std::span<const ocdbt::DataFileId> files;
  /// Which of `files` takes the nodes.
  uint32_t node_file = 0;
  const ocdbt::Config& config;
  /// Writes that file.
  io::FileWriter& writer;
};

/// Writes the tree of `entries`, of which there is at least one, keys strictly
/// increasing.
///
/// Errors: `kInvalidArgument` when an entry, or two entries of an interior
/// node, exceed `Config::max_decoded_node_bytes`; `kSystem` when a write fails.
Result<WrittenTree> WriteTree(std::span<const ocdbt::Entry> entries,
                              const TreeTarget& target, int num_threads);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_TREE_WRITER_H_
