#include "cc/ocdbt/btree_node.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/ocdbt/varint.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

Config Uncompressed() {
  Config config;
  config.zstd_level.reset();
  return config;
}

std::vector<DataFileId> SampleFiles() { return {{"", "d/0"}, {"p/", "d/1"}}; }

/// The columns of a node as they stand, right or wrong; by default those of two
/// entries, "ab" inline and "ac" indirect, or of two children.
struct Columns {
  uint8_t height = 0;
  uint64_t num_files = 1;
  std::string files = std::string("\3\0d/1", 5);  // suffix length, base, path
  std::optional<uint64_t> count;
  std::vector<uint64_t> prefix_lengths = {1};
  std::vector<uint64_t> suffix_lengths = {2, 1};
  std::vector<uint64_t> subtree_common_prefix_lengths = {1, 1};
  std::string suffixes = "abc";
  std::vector<uint64_t> value_lengths = {3, 20};
  std::string kinds = std::string("\0\1", 2);
  std::vector<uint64_t> file_places = {0};
  std::vector<uint64_t> offsets = {10};
  std::string inline_bytes = "xyz";
  /// Of an interior node: lengths, keys, tree bytes, value bytes.
  std::vector<uint64_t> statistics = {30, 31, 1, 2, 40, 41, 0, 0};
  std::string rest;

  static Columns Interior() {
    Columns columns;
    columns.height = 1;
    columns.file_places = {0, 0};
    columns.offsets = {0, 30};
    return columns;
  }

  std::string Body() const {
    std::string body(1, static_cast<char>(height));
    AppendVarint(body, num_files);
    body += files;
    AppendVarint(body, count.value_or(suffix_lengths.size()));
    Append(body, prefix_lengths);
    Append(body, suffix_lengths);
    if (height > 0) Append(body, subtree_common_prefix_lengths);
    body += suffixes;
    if (height == 0) {
      Append(body, value_lengths);
      body += kinds;
    }
    Append(body, file_places);
    Append(body, offsets);
    if (height > 0) Append(body, statistics);
    if (height == 0) body += inline_bytes;
    return body + rest;
  }

 private:
  static void Append(std::string& out, const std::vector<uint64_t>& column) {
    for (const uint64_t value : column) AppendVarint(out, value);
  }
};

Result<BtreeNode> Decode(const std::string& body,
                         std::string_view key_prefix = "") {
  return DecodeBtreeNode(MakeRecord(RecordKind::kBtreeNode, body), "",
                         key_prefix);
}

void ExpectCorrupt(Columns columns, std::string_view message,
                   const std::function<void(Columns&)>& damage) {
  EXPECT_OK(Decode(columns.Body()));
  damage(columns);
  const auto node = Decode(columns.Body());
  if (!EXPECT_FALSE(node.has_value())) {
    EXPECT_EQ(message, "");
    return;
  }
  EXPECT_EQ(node.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(node.error().message, message);
}

void ExpectLeafCorrupt(std::string_view message,
                       const std::function<void(Columns&)>& damage) {
  ExpectCorrupt(Columns(), message, damage);
}

void ExpectInteriorCorrupt(std::string_view message,
                           const std::function<void(Columns&)>& damage) {
  ExpectCorrupt(Columns::Interior(), message, damage);
}

void ExpectSame(const BtreeNode& node, const std::vector<Entry>& entries) {
  ASSERT_EQ(node.entries.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const Value& got = node.entries[i].value;
    const Value& want = entries[i].value;
    EXPECT_EQ(node.entries[i].key, entries[i].key);
    ASSERT_EQ(got.is_inline(), want.is_inline());
    EXPECT_EQ(got.length, want.length);
    if (got.is_inline()) {
      EXPECT_EQ(got.inline_bytes(), want.inline_bytes());
    } else {
      EXPECT_EQ(got.offset, want.offset);
      EXPECT_TRUE(node.files[got.file] == SampleFiles()[want.file]);
    }
  }
}

std::vector<Entry> SampleEntries() {
  return {InlineEntry("model/a/.zarray", "{}"),
          IndirectEntry("model/a/0.0", 1, 5, 600),
          InlineEntry("model/a/0.1", ""),
          IndirectEntry("model/a/0.10", 0, UINT64_MAX - 1, 0),
          IndirectEntry("model/b", 1, 0, 1)};
}

/// Written by TensorStore 0.1.86.
const char kTensorStoreLeaf[] =
    "0cdb20dea400000000000000000000030202222020000000642f30323965333564633239"
    "653764373564633237643239313936383464346133373165383766333261636435386136"
    "643066363062663265353738613132303839353838616537373263333264353732393039"
    "35653830343866383138363664340402040409030101772f2e7a6172726179302e303132"
    "02060606000101010102000000007b7d4f5dddaf";

TEST(LeafRoundTrips) {
  const auto entries = SampleEntries();
  for (const bool is_root : {false, true}) {
    const auto node = EncodeLeafNode(entries, SampleFiles(), Config(), is_root);
    ASSERT_OK(node);
    EXPECT_EQ(node->subtree_common_prefix_length, is_root ? 0 : 6);
    EXPECT_EQ(node->statistics.num_keys, 5);
    EXPECT_EQ(node->statistics.num_tree_bytes, node->record.size());
    EXPECT_EQ(node->statistics.num_indirect_value_bytes, 601);
    const auto back = DecodeBtreeNode(ByteView::Own(node->record), "",
                                      is_root ? "" : "model/");
    ASSERT_OK(back);
    EXPECT_EQ(back->height, 0);
    ExpectSame(*back, entries);
  }
}

TEST(LeafOfOneKeyKeepsNothingOfIt) {
  const std::vector<Entry> entries = {InlineEntry("only/key", "v")};
  const auto node =
      EncodeLeafNode(entries, SampleFiles(), Uncompressed(), false);
  ASSERT_OK(node);
  EXPECT_EQ(node->subtree_common_prefix_length, 8);
  EXPECT_EQ(node->record.find("only"), std::string::npos);
  const auto back =
      DecodeBtreeNode(ByteView::Own(node->record), "", "only/key");
  ASSERT_OK(back);
  ExpectSame(*back, entries);
}

TEST(EmptyKeyIsAKey) {
  const std::vector<Entry> entries = {InlineEntry("", "v"),
                                      InlineEntry("a", "w")};
  const auto node = EncodeLeafNode(entries, {}, Config(), false);
  ASSERT_OK(node);
  ExpectSame(*DecodeBtreeNode(ByteView::Own(node->record), "", ""), entries);
}

TEST(TransitivePathGoesBeforeBasePaths) {
  const auto node = EncodeLeafNode(SampleEntries(), SampleFiles(), Config(),
                                   /*is_root=*/true);
  ASSERT_OK(node);
  const auto back = DecodeBtreeNode(ByteView::Own(node->record), "t/", "");
  ASSERT_OK(back);
  EXPECT_EQ(back->files[0].path(), "t/d/0");
  EXPECT_EQ(back->files[1].path(), "t/p/d/1");
  EXPECT_EQ(back->files[1].base_path, "t/p/");
}

TEST(InteriorRoundTrips) {
  const std::vector<InteriorEntry> children = {
      {"model/a", 7, {{1, 5, 600}, {10, 700, 90}}},
      {"model/b", 6, {{0, 605, 50}, {3, 50, UINT64_MAX}}},
      {"model/bc", 8, {{1, 655, 60}, {4, 60, 1}}}};
  for (const bool is_root : {false, true}) {
    const auto node =
        EncodeInteriorNode(3, children, SampleFiles(), Config(), is_root);
    ASSERT_OK(node);
    EXPECT_EQ(node->subtree_common_prefix_length, is_root ? 0 : 6);
    EXPECT_EQ(node->statistics.num_keys, 17);
    EXPECT_EQ(node->statistics.num_tree_bytes, 810 + node->record.size());
    EXPECT_EQ(node->statistics.num_indirect_value_bytes, UINT64_MAX);
    const auto back = DecodeBtreeNode(ByteView::Own(node->record), "",
                                      is_root ? "" : "model/");
    ASSERT_OK(back);
    EXPECT_EQ(back->height, 3);
    ASSERT_EQ(back->children.size(), children.size());
    for (size_t i = 0; i < children.size(); ++i) {
      const InteriorEntry& got = back->children[i];
      EXPECT_EQ(got.key, children[i].key);
      EXPECT_EQ(got.subtree_common_prefix_length,
                children[i].subtree_common_prefix_length);
      EXPECT_TRUE(got.node.statistics == children[i].node.statistics);
      EXPECT_EQ(got.node.location.offset, children[i].node.location.offset);
      EXPECT_EQ(got.node.location.length, children[i].node.location.length);
      EXPECT_TRUE(back->files[got.node.location.file] ==
                  SampleFiles()[children[i].node.location.file]);
    }
  }
}

/// What a child knows of its own prefix bounds what its parent may leave out.
TEST(InteriorLeavesOutNoMoreThanItsChildren) {
  const std::vector<InteriorEntry> children = {
      {"model/a", 2, {{0, 0, 50}, {1, 50, 0}}},
      {"model/b", 7, {{0, 50, 50}, {1, 50, 0}}}};
  const auto node = EncodeInteriorNode(1, children, SampleFiles(), Config(),
                                       /*is_root=*/false);
  ASSERT_OK(node);
  EXPECT_EQ(node->subtree_common_prefix_length, 2);
}

TEST(DecodesAndEncodesAsTensorStoreDoes) {
  const std::string record = FromHex(kTensorStoreLeaf);
  const auto node = DecodeBtreeNode(ByteView::Own(record), "", "");
  ASSERT_OK(node);
  ASSERT_EQ(node->entries.size(), 4);
  EXPECT_EQ(node->entries[0].key, "w/.zarray");
  EXPECT_EQ(node->entries[0].value.inline_bytes(), "{}");
  EXPECT_EQ(node->entries[3].key, "w/0.2");
  EXPECT_EQ(node->entries[3].value.length, 6);
  const auto again =
      EncodeLeafNode(node->entries, node->files, Uncompressed(), true);
  ASSERT_OK(again);
  EXPECT_TRUE(again->record == record);
}

TEST(InvalidEntries) {
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  const std::string long_value(kMaxInlineValueBytes + 1, 'v');
  const std::vector<std::vector<Entry>> cases = {
      {},
      {InlineEntry("b", ""), InlineEntry("a", "")},
      {InlineEntry("a", ""), InlineEntry("a", "")},
      {InlineEntry(long_key, "")},
      {InlineEntry("a", long_value)},
      {IndirectEntry("a", 2, 0, 0)}};
  for (const auto& entries : cases) {
    const auto node = EncodeLeafNode(entries, SampleFiles(), Config(), true);
    ASSERT_FALSE(node.has_value());
    EXPECT_EQ(node.error().kind, ErrorKind::kInvalidArgument);
  }
}

TEST(InvalidChildren) {
  const std::vector<InteriorEntry> too_long = {{"a", 2, {}}};
  const std::vector<InteriorEntry> no_file = {{"a", 0, {{2, 0, 0}, {}}}};
  for (const auto& children : {too_long, no_file, {}}) {
    EXPECT_FALSE(EncodeInteriorNode(1, children, SampleFiles(), Config(), true)
                     .has_value());
  }
  EXPECT_FALSE(EncodeInteriorNode(0, too_long, SampleFiles(), Config(), true)
                   .has_value());
}

TEST(CorruptCount) {
  ExpectLeafCorrupt("no entries", [](Columns& c) { c.count = 0; });
  ExpectLeafCorrupt("number of entries 1048576 exceeds the",
                    [](Columns& c) { c.count = kMaxNodeEntries; });
  ExpectLeafCorrupt("number of entries 1048577 exceeds the limit",
                    [](Columns& c) { c.count = kMaxNodeEntries + 1; });
  ExpectLeafCorrupt("number of entries",
                    [](Columns& c) { c.count = UINT64_MAX; });
}

TEST(CorruptKeys) {
  ExpectLeafCorrupt("prefix length 3 of entry 1 exceeds previous key's 2",
                    [](Columns& c) { c.prefix_lengths = {3}; });
  ExpectLeafCorrupt("prefix length 65536 of entry 0 exceeds the limit",
                    [](Columns& c) { c.prefix_lengths = {65536}; });
  ExpectLeafCorrupt("key suffixes",
                    [](Columns& c) { c.suffix_lengths = {2, 60000}; });
  ExpectLeafCorrupt("key 1 does not follow",
                    [](Columns& c) { c.suffixes = "aba"; });
  ExpectLeafCorrupt("key 1 does not follow",
                    [](Columns& c) { c.suffixes = "abb"; });
  ExpectLeafCorrupt("key 1 does not follow", [](Columns& c) {
    c.suffix_lengths = {2, 0};
    c.suffixes = "ab";
  });
  ExpectLeafCorrupt("key length 65536 of entry 1 exceeds", [](Columns& c) {
    c.suffix_lengths = {2, 65535};
    c.suffixes = "ab" + std::string(65535, 'c');
  });
}

TEST(CorruptKeyWithPrefixFromAbove) {
  const std::string body = Columns().Body();
  EXPECT_OK(Decode(body, std::string(kMaxKeyBytes - 2, 'p')));
  EXPECT_FALSE(Decode(body, std::string(kMaxKeyBytes - 1, 'p')).has_value());
  EXPECT_FALSE(Decode(body, std::string(kMaxKeyBytes + 1, 'p')).has_value());
}

TEST(CorruptSubtreePrefix) {
  ExpectInteriorCorrupt(
      "subtree common prefix length 3 of entry 0 exceeds key length 2",
      [](Columns& c) { c.subtree_common_prefix_lengths = {3, 1}; });
}

TEST(CorruptValues) {
  ExpectLeafCorrupt("value kind 2 of entry 1",
                    [](Columns& c) { c.kinds = std::string("\0\2", 2); });
  ExpectLeafCorrupt("inline values",
                    [](Columns& c) { c.value_lengths = {4, 20}; });
  ExpectLeafCorrupt("inline value length 1048577 of entry 0", [](Columns& c) {
    c.value_lengths = {kMaxInlineValueBytes + 1, 20};
  });
  ExpectLeafCorrupt("data file 1 of entry 0 exceeds the limit of 0",
                    [](Columns& c) { c.file_places = {1}; });
  ExpectLeafCorrupt("data file table is empty", [](Columns& c) {
    c.num_files = 0;
    c.files = "";
  });
  ExpectLeafCorrupt("2 bytes follow the end",
                    [](Columns& c) { c.rest.assign(2, 'x'); });
}

TEST(CorruptChildren) {
  ExpectInteriorCorrupt("data file 1 of entry 1",
                        [](Columns& c) { c.file_places = {0, 1}; });
  ExpectInteriorCorrupt("data file table is empty", [](Columns& c) {
    c.num_files = 0;
    c.files = "";
  });
  ExpectInteriorCorrupt("1 bytes follow",
                        [](Columns& c) { c.rest.assign(1, 'x'); });
}

TEST(CorruptWhenCutAnywhere) {
  for (const auto& columns : {Columns(), Columns::Interior()}) {
    const std::string body = columns.Body();
    for (size_t size = 0; size < body.size(); ++size) {
      ASSERT_FALSE(Decode(body.substr(0, size)).has_value());
    }
  }
}

/// A small node must not unfold to many gigabytes of keys.
TEST(CorruptNodeOfRepeatedLongKeys) {
  constexpr size_t kCount = 100'000;
  Columns columns;
  columns.prefix_lengths.assign(kCount - 1, 0);
  columns.suffix_lengths.assign(kCount, 1);
  columns.suffix_lengths[0] = 60'000;
  columns.suffixes = std::string(60'000, 'k');
  for (size_t i = 1; i < kCount; ++i) {
    columns.prefix_lengths[i - 1] = 59'999 + (i < 5000 ? i : 5000) - 1;
    columns.suffixes += 'z';
  }
  columns.value_lengths.assign(kCount, 0);
  columns.kinds.assign(kCount, '\0');
  columns.file_places = {};
  columns.offsets = {};
  columns.inline_bytes = "";
  const auto node = Decode(columns.Body());
  ASSERT_FALSE(node.has_value());
  EXPECT_EQ(node.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(node.error().message, "exceed the limit of 536870912");
}

TEST(CorruptOtherRecord) {
  EXPECT_FALSE(DecodeBtreeNode(
                   MakeRecord(RecordKind::kManifest, Columns().Body()), "", "")
                   .has_value());
}

}  // namespace
}  // namespace relayout::ocdbt
