/// \file
/// Damages records at random, with a good checksum put back so that the decoder
/// gets to see the damage.  It must refuse them or decode them; the sanitizers
/// watch that it does nothing else.  What it decodes must be good enough for
/// the encoder, and come back the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/listing.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/ocdbt/version_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

constexpr int kNumRounds = 20'000;
constexpr uint32_t kSeed = 20240607;

/// Leaves the header alone, which has tests of its own.
constexpr size_t kHeaderBytes = 14;

using Random = std::mt19937;

/// The same damage each time.
Random NewRandom(uint32_t seed) { return Random(seed); }

size_t Pick(Random& random, size_t begin, size_t end) {
  return std::uniform_int_distribution<size_t>(begin, end - 1)(random);
}

/// Bytes at which decoders go wrong.
char InterestingByte(Random& random) {
  const char bytes[] = {'\0', '\1', '\x7f', '\x80', '\xff', '/', '.'};
  return random() % 3 == 0 ? static_cast<char>(random())
                           : bytes[Pick(random, 0, sizeof(bytes))];
}

std::string Mutate(std::string record, Random& random) {
  const size_t num_changes = Pick(random, 1, 5);
  for (size_t i = 0; i < num_changes; ++i) {
    const size_t at = Pick(random, kHeaderBytes, record.size() - 4);
    switch (random() % 4) {
      case 0:
        record.erase(at, Pick(random, 1, 4));
        break;
      case 1:
        record.insert(at, Pick(random, 1, 12), InterestingByte(random));
        break;
      default:
        record[at] = InterestingByte(random);
    }
    if (record.size() < kHeaderBytes + 8) record.resize(kHeaderBytes + 8);
  }
  return record;
}

Config Uncompressed() {
  Config config;
  config.zstd_level.reset();
  return config;
}

TestTree SampleTree() {
  TestTree tree;
  tree.files.insert(tree.files.end(), {{"p/", "d/1"}, {"", "d/x"}});
  return tree;
}

std::vector<Entry> SampleEntries() {
  return {InlineEntry("layers/0/.zarray", "{\"zarr\": 2}"),
          IndirectEntry("layers/0/0.0", 1, 0, 300),
          IndirectEntry("layers/0/0.1", 2, 300, 1000),
          InlineEntry("layers/1", ""), IndirectEntry("step", 2, 1300, 8)};
}

std::string SampleLeaf() {
  TestTree tree = SampleTree();
  tree.AddLeaf(SampleEntries());
  return tree.nodes;
}

std::string SampleInterior() {
  TestTree tree = SampleTree();
  const std::vector<InteriorEntry> children = {
      {"layers/0", 7, {{0, 0, 300}, {10, 300, 5000}}},
      {"layers/1/kernel", 8, {{1, 300, 200}, {9, 500, 0}}},
      {"step", 0, {{0, 500, 70}, {1, 70, 0}}}};
  tree.AddInterior(2, children);
  return tree.nodes;
}

Manifest SampleManifest() {
  Manifest manifest;
  manifest.config = Uncompressed();
  manifest.config.version_tree_arity_log2 = 1;
  manifest.files = {{"", "d/0"}, {"p/", "d/1"}};
  manifest.versions = {{5, 1, {{0, 7, 300}, {10, 900, 4}}, 11},
                       {6, 0, {{1, 400, 30}, {2, 30, 0}}, 12}};
  manifest.version_nodes = {{{0, 90, 80}, 4, 1, 4, 3}};
  return manifest;
}

std::string SampleVersionNode() {
  VersionTreeNode node;
  node.files = {{"", "d/0"}};
  node.versions = {{5, 1, {{0, 7, 300}, {10, 900, 4}}, 11},
                   {6, 0, {{0, 400, 30}, {2, 30, 0}}, 12}};
  return *EncodeVersionTreeNode(node, Uncompressed());
}

/// Calls `check` with damaged copies of `record`; it returns whether they were
/// good all the same.  Some must be: else the checks after them see nothing.
void ForEachMutation(const std::string& record, const auto& check) {
  Random random = NewRandom(kSeed);
  int num_good = 0;
  for (int round = 0; round < kNumRounds; ++round) {
    if (check(Reseal(Mutate(record, random)))) ++num_good;
  }
  EXPECT_TRUE(num_good > 10);
  EXPECT_TRUE(num_good < kNumRounds / 2);
}

bool SameEntry(const Entry& a, const Entry& b) {
  if (a.key != b.key || a.value.length != b.value.length) return false;
  if (a.value.is_inline() != b.value.is_inline()) return false;
  return a.value.is_inline() ? a.value.inline_bytes() == b.value.inline_bytes()
                             : a.value.offset == b.value.offset;
}

bool SameChild(const InteriorEntry& a, const InteriorEntry& b) {
  return a.key == b.key &&
         a.subtree_common_prefix_length == b.subtree_common_prefix_length &&
         a.node.statistics == b.node.statistics &&
         a.node.location.offset == b.node.location.offset;
}

bool CheckNode(const ByteView& record) {
  const auto node = DecodeBtreeNode(record, "t/", "prefix/");
  if (!node.has_value()) return false;
  const auto again =
      node->height == 0
          ? EncodeLeafNode(node->entries, node->files, Config(), true)
          : EncodeInteriorNode(node->height, node->children, node->files,
                               Config(), true);
  if (!EXPECT_OK(again)) return true;
  const auto back = DecodeBtreeNode(ByteView::Own(again->record), "", "");
  if (!EXPECT_OK(back)) return true;
  EXPECT_TRUE(std::ranges::equal(node->entries, back->entries, SameEntry));
  EXPECT_TRUE(std::ranges::equal(node->children, back->children, SameChild));
  return true;
}

TEST(Leaves) { ForEachMutation(SampleLeaf(), CheckNode); }

TEST(InteriorNodes) { ForEachMutation(SampleInterior(), CheckNode); }

TEST(Manifests) {
  ForEachMutation(*EncodeManifest(SampleManifest()),
                  [](const ByteView& record) {
                    const auto manifest = DecodeManifest(record);
                    if (manifest.has_value())
                      EXPECT_OK(EncodeManifest(*manifest));
                    return manifest.has_value();
                  });
}

TEST(VersionTreeNodes) {
  ForEachMutation(SampleVersionNode(), [](const ByteView& record) {
    const auto node = DecodeVersionTreeNode(record, "t/");
    if (node.has_value()) EXPECT_OK(EncodeVersionTreeNode(*node, Config()));
    return node.has_value();
  });
}

TEST(EveryByteOfEveryRecord) {
  for (const auto& record :
       {SampleLeaf(), SampleInterior(), *EncodeManifest(SampleManifest()),
        SampleVersionNode()}) {
    for (size_t at = 0; at < record.size(); ++at) {
      for (const char c : {'\0', '\x01', '\x7f', '\x80', '\xff'}) {
        std::string damaged = record;
        damaged[at] = c;
        const ByteView resealed = Reseal(damaged);
        // At most one knows the magic number.
        EXPECT_FALSE(DecodeBtreeNode(resealed, "", "").has_value() &&
                     DecodeManifest(resealed).has_value());
        EXPECT_FALSE(DecodeBtreeNode(resealed, "", "").has_value() &&
                     DecodeVersionTreeNode(resealed, "").has_value());
      }
    }
  }
}

/// Damages any node of a database on disk.
TEST(Databases) {
  Random random = NewRandom(kSeed);
  TestTree tree = SampleTree();
  std::vector<InteriorEntry> children;
  children.push_back(tree.AddLeaf(SampleEntries()));
  children.push_back(tree.AddLeaf(std::vector{InlineEntry("t", "last")}));
  const auto root = tree.AddInterior(1, children, true);
  children.push_back(root);
  const std::string directory = tree.Write("database", root, 1);
  WriteFile(directory, "p/d/1", std::string(300, 'x'));
  WriteFile(directory, "d/x", std::string(1308, 'x'));
  ASSERT_OK(List(directory));
  int num_good = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto& location = children[Pick(random, 0, 3)].node.location;
    std::string record = tree.nodes.substr(location.offset, location.length);
    record = Mutate(record, random);
    record.resize(location.length, 'x');
    std::string nodes = tree.nodes;
    nodes.replace(location.offset, location.length, Reseal(record).bytes());
    WriteFile(directory, "d/nodes", nodes);
    const auto listing = List(directory, 2);
    if (!listing.has_value()) continue;
    ++num_good;
    for (const Entry& entry : listing->entries) {
      ASSERT_OK(ReadValue(*listing, entry.value));
    }
  }
  EXPECT_TRUE(num_good > 0);
}

}  // namespace
}  // namespace relayout::ocdbt
