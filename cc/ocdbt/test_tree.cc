#include "cc/ocdbt/test_tree.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/byte_view.h"
#include "cc/base/crc32c.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/varint.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

constexpr size_t kLengthOffset = 4;
constexpr size_t kLengthBytes = 8;
constexpr size_t kChecksumBytes = 4;

}  // namespace

Entry InlineEntry(std::string_view key, std::string_view value) {
  Entry entry{.key = key, .value = {}};
  entry.value.length = value.size();
  entry.value.inline_data = value.data();
  return entry;
}

Entry IndirectEntry(std::string_view key, uint32_t file, uint64_t offset,
                    uint64_t length) {
  Entry entry{.key = key, .value = {}};
  entry.value.file = file;
  entry.value.offset = offset;
  entry.value.length = length;
  return entry;
}

ByteView MakeRecord(RecordKind kind, std::string_view body) {
  return ByteView::Own(*EncodeRecord(kind, body, std::nullopt));
}

ByteView Reseal(std::string record) {
  if (record.size() >= kLengthOffset + kLengthBytes + kChecksumBytes) {
    std::string length;
    AppendLittleEndian64(length, record.size());
    record.replace(kLengthOffset, kLengthBytes, length);
    record.resize(record.size() - kChecksumBytes);
    AppendLittleEndian32(record, Crc32c(record));
  }
  return ByteView::Own(std::move(record));
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    uint8_t byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

void WriteFile(const std::string& directory, const std::string& path,
               std::string_view content) {
  const auto full = std::filesystem::path(directory) / path;
  std::filesystem::create_directories(full.parent_path());
  std::ofstream(full, std::ios::binary) << content;
}

std::string NewDirectory(std::string_view name) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  std::filesystem::create_directories(path);
  return path;
}

TestTree::TestTree() { config.zstd_level.reset(); }

InteriorEntry TestTree::AddRecord(std::string_view key, std::string_view record,
                                  const NodeStatistics& statistics) {
  const DataRef location = {0, nodes.size(), record.size()};
  nodes += record;
  return {.key = key,
          .subtree_common_prefix_length = 0,
          .node = {location, statistics}};
}

InteriorEntry TestTree::Add(std::string_view key, const EncodedNode& node) {
  InteriorEntry entry = AddRecord(key, node.record, node.statistics);
  entry.subtree_common_prefix_length = node.subtree_common_prefix_length;
  return entry;
}

InteriorEntry TestTree::AddLeaf(std::span<const Entry> entries, bool is_root) {
  return Add(entries.front().key,
             *EncodeLeafNode(entries, files, config, is_root));
}

InteriorEntry TestTree::AddInterior(uint8_t height,
                                    std::span<const InteriorEntry> children,
                                    bool is_root) {
  return Add(children.front().key,
             *EncodeInteriorNode(height, children, files, config, is_root));
}

Manifest TestTree::MakeManifest(const InteriorEntry& root,
                                uint8_t height) const {
  Manifest manifest;
  manifest.config = config;
  manifest.files = files;
  manifest.versions = {{.generation = 1,
                        .root_height = height,
                        .root = root.node,
                        .commit_time_ns = 7}};
  return manifest;
}

std::string TestTree::Write(std::string_view name, const InteriorEntry& root,
                            uint8_t height) const {
  const std::string directory = NewDirectory(name);
  WriteFile(directory, files[0].path(), nodes);
  WriteFile(directory, std::string(kManifestName),
            *EncodeManifest(MakeManifest(root, height)));
  return directory;
}

}  // namespace relayout::ocdbt
