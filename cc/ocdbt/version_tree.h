#ifndef RELAYOUT_CC_OCDBT_VERSION_TREE_H_
#define RELAYOUT_CC_OCDBT_VERSION_TREE_H_

/// \file
/// Versions of a database, and the tree that keeps the older ones.
///
/// The newest versions, up to the arity of the tree, stand in the manifest
/// itself.  It refers to at most one tree node of each height; the taller it
/// is, the older are its versions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/node_ref.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {

inline constexpr uint8_t kMaxVersionTreeArityLog2 = 16;

/// Generation numbers have 64 bits, which bounds the height of the tree.
constexpr uint8_t MaxVersionTreeHeight(uint8_t arity_log2) {
  return static_cast<uint8_t>(63 / arity_log2);
}

/// One version: the root of a B+tree.
struct Version {
  uint64_t generation = 0;  ///< counts from 1
  uint8_t root_height = 0;
  /// `DataRef::Missing()` when the version has no keys.
  NodeRef root;
  uint64_t commit_time_ns = 0;  ///< since 1970

  bool operator==(const Version&) const = default;
};

/// Reference to a node of the version tree.
struct VersionNodeRef {
  DataRef location;
  uint64_t generation = 0;  ///< newest in the node
  uint8_t height = 0;
  uint64_t num_generations = 0;
  uint64_t commit_time_ns = 0;  ///< oldest in the node

  bool operator==(const VersionNodeRef&) const = default;
};

struct VersionTreeNode {
  uint8_t arity_log2 = 4;
  uint8_t height = 0;  ///< 0: a leaf
  std::vector<DataFileId> files;
  std::vector<Version> versions;         ///< of a leaf
  std::vector<VersionNodeRef> children;  ///< of an interior node
};

/// Decodes a node that is reached through a file of base path
/// `transitive_path`.
///
/// Errors: `kCorrupt`, `kUnsupported`; see `DecodeRecord`.
Result<VersionTreeNode> DecodeVersionTreeNode(const ByteView& record,
                                              std::string_view transitive_path);

/// Errors: `kInvalidArgument` when `node` breaks a rule of the format.
Result<std::string> EncodeVersionTreeNode(const VersionTreeNode& node,
                                          const Config& config);

/// Check the rules on generations and heights; errors are `kCorrupt`.
Status CheckVersions(const std::vector<Version>& versions, uint8_t arity_log2);
Status CheckArity(uint8_t arity_log2);

/// Read and append the columns that manifests have too.  The height of a child
/// is stored only there.
Result<std::vector<Version>> ReadVersions(ByteReader& reader, size_t max_count,
                                          size_t num_files);
Result<std::vector<VersionNodeRef>> ReadVersionNodeRefs(ByteReader& reader,
                                                        size_t max_count,
                                                        size_t num_files,
                                                        bool with_height);
void AppendVersions(std::string& out, const std::vector<Version>& versions,
                    const DataFileTableEncoder& table);
void AppendVersionNodeRefs(std::string& out,
                           const std::vector<VersionNodeRef>& refs,
                           const DataFileTableEncoder& table, bool with_height);

/// Notes the files of versions and node references for their table.
Status UseFiles(const std::vector<Version>& versions,
                const std::vector<VersionNodeRef>& refs,
                DataFileTableEncoder& table);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_VERSION_TREE_H_
