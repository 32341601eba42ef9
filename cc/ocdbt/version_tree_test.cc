#include "cc/ocdbt/version_tree.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

constexpr auto kKind = RecordKind::kVersionTreeNode;

/// Written by TensorStore 0.1.86, with an arity of 2.
const char kTensorStoreNode[] =
    "0cdb12347700000000000000000001010203221f0000642f303161666531363638393363"
    "396234373865656335656366386261333165346332396533356463323965376437356463"
    "32376432393139363834643461333702020400015080016f7d02028db14c5587e4ec18cf"
    "ae595687e4ec186a26ecee";

Config Uncompressed() {
  Config config;
  config.zstd_level.reset();
  return config;
}

Version MakeVersion(uint64_t generation) {
  return {.generation = generation,
          .root_height = 2,
          .root = {{0, 100 * generation, 50}, {7, 80, 9}},
          .commit_time_ns = 1'700'000'000'000'000'000 + generation};
}

VersionNodeRef MakeRef(uint64_t generation, uint8_t height,
                       uint64_t num_generations) {
  return {.location = {0, generation, 60},
          .generation = generation,
          .height = height,
          .num_generations = num_generations,
          .commit_time_ns = generation};
}

VersionTreeNode MakeLeaf(const std::vector<uint64_t>& generations) {
  VersionTreeNode node{.arity_log2 = 2,
                       .height = 0,
                       .files = {{"", "d/0"}},
                       .versions = {},
                       .children = {}};
  for (const uint64_t generation : generations) {
    node.versions.push_back(MakeVersion(generation));
  }
  return node;
}

VersionTreeNode MakeInterior(uint8_t height,
                             const std::vector<uint64_t>& generations) {
  VersionTreeNode node{.arity_log2 = 2,
                       .height = height,
                       .files = {{"", "d/0"}},
                       .versions = {},
                       .children = {}};
  for (const uint64_t generation : generations) {
    node.children.push_back(
        MakeRef(generation, static_cast<uint8_t>(height - 1), 1));
  }
  return node;
}

Result<VersionTreeNode> RoundTrip(const VersionTreeNode& node) {
  RELAYOUT_ASSIGN_OR_RETURN(std::string record,
                            EncodeVersionTreeNode(node, Config()));
  return DecodeVersionTreeNode(ByteView::Own(std::move(record)), "");
}

void ExpectInvalid(const VersionTreeNode& node, std::string_view message) {
  const auto record = EncodeVersionTreeNode(node, Config());
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_CONTAINS(record.error().message, message);
}

TEST(LeafRoundTrips) {
  VersionTreeNode node = MakeLeaf({5, 6, 8});
  node.versions[1].root = {DataRef::Missing(), {}};
  node.versions[1].root_height = 0;
  const auto back = RoundTrip(node);
  ASSERT_OK(back);
  EXPECT_EQ(back->arity_log2, 2);
  EXPECT_TRUE(back->versions == node.versions);
  EXPECT_TRUE(back->files == node.files);
}

TEST(InteriorRoundTrips) {
  for (const uint8_t height : {1, 2, 7}) {
    const uint64_t stride = uint64_t{1} << (2 * height);
    const auto node = MakeInterior(height, {5 * stride, 7 * stride});
    const auto back = RoundTrip(node);
    ASSERT_OK(back);
    EXPECT_EQ(back->height, height);
    EXPECT_TRUE(back->children == node.children);
  }
}

TEST(DecodesAndEncodesAsTensorStoreDoes) {
  const std::string record = FromHex(kTensorStoreNode);
  const auto node = DecodeVersionTreeNode(ByteView::Own(record), "");
  ASSERT_OK(node);
  EXPECT_EQ(node->height, 1);
  ASSERT_EQ(node->children.size(), 2);
  EXPECT_EQ(node->children[0].generation, 2);
  EXPECT_EQ(node->children[1].generation, 4);
  EXPECT_EQ(node->children[1].height, 0);
  EXPECT_EQ(*EncodeVersionTreeNode(*node, Uncompressed()), record);
}

TEST(InvalidVersions) {
  ExpectInvalid(MakeLeaf({}), "number of entries 0");
  ExpectInvalid(MakeLeaf({1, 2, 3, 4, 5}), "number of entries 5");
  ExpectInvalid(MakeLeaf({0, 1}), "generation 0 of entry 0");
  ExpectInvalid(MakeLeaf({2, 2}), "generation 2 of entry 1");
  ExpectInvalid(MakeLeaf({4, 5}), "generations 4 and 5");
  auto missing = MakeLeaf({1});
  missing.versions[0].root.location = DataRef::Missing();
  ExpectInvalid(missing, "has no root");
}

TEST(InvalidChildren) {
  ExpectInvalid(MakeInterior(1, {}), "number of entries 0");
  ExpectInvalid(MakeInterior(1, {8, 4}), "generation 4 of entry 1");
  ExpectInvalid(MakeInterior(1, {4, 6}), "not a multiple of 4");
  ExpectInvalid(MakeInterior(1, {16, 20}), "generations 16 and 20");
  auto many = MakeInterior(1, {4});
  many.children[0].num_generations = 5;
  ExpectInvalid(many, "number of generations 5 exceeds 4");
}

TEST(InvalidHeightOrArity) {
  auto node = MakeInterior(32, {uint64_t{1} << 63});
  ExpectInvalid(node, "height 32 exceeds the limit of 31");
  node.height = 31;
  EXPECT_OK(RoundTrip(node));
  for (const uint8_t arity_log2 : {0, 17}) {
    node.arity_log2 = arity_log2;
    ExpectInvalid(node, "arity");
  }
}

TEST(CorruptWhenCutAnywhere) {
  for (const auto& node : {MakeLeaf({5, 6}), MakeInterior(1, {4, 8})}) {
    const std::string record = *EncodeVersionTreeNode(node, Uncompressed());
    for (size_t size = 0; size < record.size() - 4; ++size) {
      const auto back =
          DecodeVersionTreeNode(Reseal(record.substr(0, size) + "crc!"), "");
      ASSERT_FALSE(back.has_value());
    }
  }
}

TEST(CorruptBody) {
  using std::string_view_literals::operator""sv;
  const struct {
    std::string_view body, message;
  } cases[] = {
      {""sv, "arity and height"},
      {"\0\0"sv, "arity log2 0"},
      {"\x11\0"sv, "arity log2 17"},
      {"\x02\x20"sv, "height 32"},
      {"\x02\0\0\x05"sv, "number of versions 5 exceeds the limit of 4"},
      {"\x02\0\0\x01\x01\0\0\0\0\0\0\0\0"sv, "data file table is empty"},
      {"\x02\x01\0\x00"sv, "number of entries 0"},
  };
  for (const auto& [body, message] : cases) {
    const auto node = DecodeVersionTreeNode(MakeRecord(kKind, body), "");
    ASSERT_FALSE(node.has_value());
    EXPECT_EQ(node.error().kind, ErrorKind::kCorrupt);
    EXPECT_CONTAINS(node.error().message, message);
  }
}

}  // namespace
}  // namespace relayout::ocdbt
