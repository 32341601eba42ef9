#ifndef RELAYOUT_CC_OCDBT_BTREE_NODE_H_
#define RELAYOUT_CC_OCDBT_BTREE_NODE_H_

/// \file
/// B+tree nodes.
///
/// A node stores its keys without the prefix that the path from the root gives
/// them.  Here keys are always whole: the decoder puts the prefix before them,
/// and the encoder takes it off and says how much it took, which the parent's
/// entry must repeat.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/node_ref.h"

namespace relayout::ocdbt {

inline constexpr size_t kMaxKeyBytes = 65535;
inline constexpr size_t kMaxNodeEntries = 1 << 20;
inline constexpr uint64_t kMaxInlineValueBytes = 1 << 20;

/// Most bytes that the whole keys and inline values of one node may take when
/// read; prefix compression lets a small node ask for far more than its size.
inline constexpr uint64_t kMaxNodeContentBytes = 512 << 20;

/// A child of an interior node.
struct InteriorEntry {
  /// Inclusive minimum of the keys of the child.
  std::string_view key;
  /// Length of the part of `key` that the child leaves out of its keys.
  uint32_t subtree_common_prefix_length = 0;
  NodeRef node;
};

struct BtreeNode {
  uint8_t height = 0;  ///< 0: a leaf
  /// What the data references of this node refer to.
  std::vector<DataFileId> files;
  /// Of a leaf; `Value::file` indexes `files`.  Keys strictly increasing.
  std::vector<Entry> entries;
  /// Of an interior node; likewise.
  std::vector<InteriorEntry> children;
  /// Keeps the bytes behind keys and inline values alive.
  std::shared_ptr<const void> owner;
  uint64_t num_content_bytes = 0;  ///< what `owner` holds
};

/// Decodes a node that is reached through a file of base path `transitive_path`
/// and whose keys begin with `key_prefix`.
///
/// Errors: `kCorrupt`, `kUnsupported`; see `DecodeRecord`.
Result<BtreeNode> DecodeBtreeNode(const ByteView& record,
                                  std::string_view transitive_path,
                                  std::string_view key_prefix);

struct EncodedNode {
  std::string record;
  /// For `InteriorEntry::subtree_common_prefix_length` of the parent's entry;
  /// 0 for a root.
  uint32_t subtree_common_prefix_length = 0;
  /// Of the subtree, for the parent's entry.
  NodeStatistics statistics;
};

/// Encodes a leaf; its values refer to `files`, whose base paths are relative
/// to the database.  A node that is to be a root keeps its keys whole.
///
/// Errors: `kInvalidArgument` when there are no entries or more than a node may
/// have, keys don't strictly increase, or a limit above is exceeded.
Result<EncodedNode> EncodeLeafNode(std::span<const Entry> entries,
                                   std::span<const DataFileId> files,
                                   const Config& config, bool is_root);

/// Encodes an interior node, likewise; `height` is at least 1.
Result<EncodedNode> EncodeInteriorNode(uint8_t height,
                                       std::span<const InteriorEntry> children,
                                       std::span<const DataFileId> files,
                                       const Config& config, bool is_root);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_BTREE_NODE_H_
