#ifndef RELAYOUT_CC_OCDBT_TEST_TREE_H_
#define RELAYOUT_CC_OCDBT_TEST_TREE_H_

/// \file
/// Small databases for tests, good ones and damaged ones.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/record.h"

namespace relayout::ocdbt {

Entry InlineEntry(std::string_view key, std::string_view value);
Entry IndirectEntry(std::string_view key, uint32_t file, uint64_t offset,
                    uint64_t length);

/// Returns `body` as an uncompressed record.
ByteView MakeRecord(RecordKind kind, std::string_view body);

/// Puts length and checksum of a changed record right.
ByteView Reseal(std::string record);

std::string FromHex(std::string_view hex);

/// Writes a new file below `directory`, with the directories it needs.
void WriteFile(const std::string& directory, const std::string& path,
               std::string_view content);

/// Returns a new directory for this test program.
std::string NewDirectory(std::string_view name);

/// A database in the making; its nodes go to one data file.
class TestTree {
 public:
  /// Nodes are uncompressed, so that tests can damage them in known places.
  TestTree();

  /// Each adds a node and returns what a parent's entry says of it; a test may
  /// then change that.
  InteriorEntry AddLeaf(std::span<const Entry> entries, bool is_root = false);
  InteriorEntry AddInterior(uint8_t height,
                            std::span<const InteriorEntry> children,
                            bool is_root = false);

  /// Adds any bytes as a node.
  InteriorEntry AddRecord(std::string_view key, std::string_view record,
                          const NodeStatistics& statistics);

  /// Returns the manifest of a single version.
  Manifest MakeManifest(const InteriorEntry& root, uint8_t height) const;

  /// Writes the nodes and the manifest to a new directory and returns it.
  std::string Write(std::string_view name, const InteriorEntry& root,
                    uint8_t height) const;

  Config config;
  /// `files[0]` takes the nodes.
  std::vector<DataFileId> files = {{"", "d/nodes"}};
  std::string nodes;

 private:
  InteriorEntry Add(std::string_view key, const EncodedNode& node);
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_TEST_TREE_H_
