#include "cc/rekey/flatten_shards.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/str_cat.h"
#include "cc/rekey/fake_listing.h"
#include "cc/testing/test.h"
#include "cc/zarr/shard_index.h"

namespace relayout::rekey {
namespace {

namespace fs = std::filesystem;

using zarr::ShardIndex;
using zarr::ShardRange;

constexpr zarr::ChunkKeyFormat kDefault = {
    zarr::ChunkKeyFormat::Style::kDefault, '/'};

/// Two shards of 2 x 2 inner chunks side by side; the array ends in the middle
/// of the second one.
ShardedArray Array(const std::string& name) {
  return {.name = name,
          .keys = kDefault,
          .shard_grid = {1, 2},
          .inner_grid_per_shard = {2, 2},
          .inner_grid = {2, 3},
          .has_checksum = true,
          .index_is_at_end = true,
          .metadata = "flat"};
}

/// A shard whose chunks are "a", "bb", none and "cccc".
std::string Shard(const ShardedArray& array) {
  const std::string data = "abbcccc";
  const uint64_t start = array.index_is_at_end ? 0 : 64 + 4;
  const ShardIndex ranges = {ShardRange{start, 1}, ShardRange{start + 1, 2},
                             std::nullopt, ShardRange{start + 3, 4}};
  const std::string index = zarr::EncodeShardIndex(ranges, array.has_checksum);
  return array.index_is_at_end ? data + index : index + data;
}

/// `<key>=<value>`, or `<key>@<file>+<offset>:<length>`, of each entry.
std::vector<std::string> Describe(const ocdbt::Listing& listing) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : listing.entries) {
    lines.push_back(value.is_inline()
                        ? StrCat(key, "=", value.inline_bytes())
                        : StrCat(key, "@", listing.files[value.file], "+",
                                 value.offset, ":", value.length));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(FlattensInlineShards) {
  for (const bool at_end : {true, false}) {
    ShardedArray array = Array("a");
    array.index_is_at_end = at_end;
    const auto listing = FakeListing(testing::TempDir())
                             .AddInline("a/zarr.json", "sharded")
                             .AddInline("a/c/0/0", Shard(array))
                             .AddInline("a/c/0/1", Shard(array))
                             .AddInline("b/zarr.json", "other")
                             .AddInline("b/c/0", "x")
                             .Build();
    const auto flat = FlattenShards(listing, {array}, 2);
    ASSERT_OK(flat);
    EXPECT_EQ(Describe(*flat), Lines({"a/c/0/0=a", "a/c/0/1=bb", "a/c/0/2=a",
                                      "a/c/1/1=cccc", "a/zarr.json=flat"}));
    EXPECT_EQ(flat->files, listing->files);
  }
}

TEST(FlattensShardsInFiles) {
  const fs::path directory = fs::path(testing::TempDir()) / "files";
  fs::create_directories(directory / "d");
  ShardedArray array = Array("a");
  const std::string shard = Shard(array);
  std::ofstream(directory / "d/0")
      << std::string(100, 'x') << shard << std::string(800, 'x');
  std::ofstream(directory / "d/2") << shard;
  const auto listing = FakeListing(directory)
                           .AddInline("a/zarr.json", "")
                           .AddIndirect("a/c/0/0", 2, 0, shard.size())
                           .AddIndirect("a/c/0/1", 0, 100, shard.size())
                           .Build();
  const auto flat = FlattenShards(listing, {array});
  ASSERT_OK(flat);
  EXPECT_EQ(Describe(*flat),
            Lines({"a/c/0/0@d/2+0:1", "a/c/0/1@d/2+1:2", "a/c/0/2@d/0+100:1",
                   "a/c/1/1@d/2+3:4", "a/zarr.json=flat"}));
}

TEST(FlattensAnArrayWithoutShards) {
  const auto listing =
      FakeListing(testing::TempDir()).AddInline("a/zarr.json", "").Build();
  const auto flat = FlattenShards(listing, {Array("a")});
  ASSERT_OK(flat);
  EXPECT_EQ(Describe(*flat), Lines({"a/zarr.json=flat"}));
}

TEST(FlattensManyShardsInOrder) {
  ShardedArray array = Array("a");
  array.shard_grid = {30, 30};
  array.inner_grid = {60, 60};
  FakeListing fake(testing::TempDir());
  fake.AddInline("a/zarr.json", "");
  for (int i = 0; i < 30; ++i) {
    for (int j = 0; j < 30; ++j) {
      fake.AddInline(StrCat("a/c/", i, "/", j), Shard(array));
    }
  }
  const auto listing = fake.Build();
  const auto one = FlattenShards(listing, {array}, 1);
  const auto many = FlattenShards(listing, {array}, 8);
  ASSERT_OK(one);
  ASSERT_OK(many);
  EXPECT_EQ(one->entries.size(), 30 * 30 * 3 + 1);
  EXPECT_EQ(Describe(*one), Describe(*many));
}

TEST(OutlivesItsSource) {
  ShardedArray array = Array("a");
  auto listing = FakeListing(testing::TempDir())
                     .AddInline("a/zarr.json", "")
                     .AddInline("a/c/0/0", Shard(array))
                     .Build();
  auto flat = FlattenShards(listing, {array});
  ASSERT_OK(flat);
  listing.reset();
  EXPECT_EQ(Describe(*flat).front(), "a/c/0/0=a");
}

void ExpectError(const std::string& key, const std::string& shard,
                 const std::function<void(ShardedArray&)>& change,
                 ErrorKind kind, const std::vector<std::string>& parts) {
  ShardedArray array = Array("a");
  change(array);
  const auto listing = FakeListing(testing::TempDir())
                           .AddInline("a/zarr.json", "")
                           .AddInline("v2/.zarray", "")
                           .AddInline("a/" + key, shard)
                           .Build();
  const auto flat = FlattenShards(listing, {array});
  if (!EXPECT_FALSE(flat.has_value())) return;
  EXPECT_EQ(flat.error().kind, kind);
  for (const std::string& part : parts) {
    EXPECT_CONTAINS(flat.error().message, part);
  }
}

void Same(ShardedArray& /*array*/) {}

TEST(RefusesDamagedShards) {
  const std::string shard = Shard(Array("a"));
  const std::vector<std::string> names = {"\"a\"", "\"c/0/0\""};
  ExpectError("c/0/0", "", Same, ErrorKind::kCorrupt, names);
  ExpectError("c/0/0", shard.substr(20), Same, ErrorKind::kCorrupt, names);
  std::string flipped = shard;
  flipped[10] ^= 1;
  ExpectError("c/0/0", flipped, Same, ErrorKind::kCorrupt,
              {"\"a\"", "\"c/0/0\"", "CRC-32C"});
  const ShardIndex beyond(4, ShardRange{60, 10});
  ExpectError("c/0/0", zarr::EncodeShardIndex(beyond, true), Same,
              ErrorKind::kCorrupt, {"\"a\"", "\"c/0/0\"", "leaves"});
}

TEST(RefusesKeysThatSpellNoShard) {
  const std::string shard = Shard(Array("a"));
  ExpectError("c/0", shard, Same, ErrorKind::kCorrupt, {"\"a\"", "\"c/0\""});
  ExpectError("c/1/0", shard, Same, ErrorKind::kCorrupt,
              {"\"a\"", "\"c/1/0\"", "outside the grid"});
}

TEST(RefusesGridsThatDoNotFit) {
  using Grid = std::vector<uint64_t>;
  const auto expect = [](const Grid& shards, const Grid& per_shard,
                         const Grid& inner, ErrorKind kind) {
    ExpectError("c/0/0", "",
                [&](ShardedArray& array) {
                  array.shard_grid = shards;
                  array.inner_grid_per_shard = per_shard;
                  array.inner_grid = inner;
                },
                kind, {"\"a\""});
  };
  expect({1, 3}, {2, 2}, {2, 3}, ErrorKind::kInvalidArgument);
  expect({1}, {2, 2}, {2, 3}, ErrorKind::kInvalidArgument);
  expect({1, 2}, {2}, {2, 3}, ErrorKind::kInvalidArgument);
  expect({1, 2}, {0, 2}, {2, 3}, ErrorKind::kInvalidArgument);
  expect({UINT64_MAX}, {1}, {UINT64_MAX}, ErrorKind::kInvalidArgument);
  expect({1, 1}, {uint64_t{1} << 40, uint64_t{1} << 40}, {2, 3},
         ErrorKind::kInvalidArgument);
  expect({1, 1}, {kMaxInnerChunks, 2}, {2, 2}, ErrorKind::kUnsupported);
}

TEST(RefusesArraysThatAreNotThere) {
  for (const char* name : {"b", "v2", ""}) {
    ExpectError("c/0/0", "", [&](ShardedArray& array) { array.name = name; },
                ErrorKind::kInvalidArgument, {StrCat('"', name, '"')});
  }
  const auto listing =
      FakeListing(testing::TempDir()).AddInline("a/zarr.json", "").Build();
  const auto twice = FlattenShards(listing, {Array("a"), Array("a")});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_CONTAINS(twice.error().message, "twice");
}

TEST(NamesADataFileThatIsGone) {
  const auto listing = FakeListing(testing::TempDir())
                           .AddInline("a/zarr.json", "")
                           .AddIndirect("a/c/0/0", 1, 0, 100)
                           .Build();
  const auto flat = FlattenShards(listing, {Array("a")});
  ASSERT_FALSE(flat.has_value());
  EXPECT_EQ(flat.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(flat.error().message, "d/1");
}

}  // namespace
}  // namespace relayout::rekey
