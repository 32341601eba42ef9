#include "cc/rekey/array_summary.h"

#include <string_view>
#include <vector>

#include "cc/rekey/fake_listing.h"
#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

TEST(SummarizesArrays) {
  const auto listing = FakeListing()
                           .AddInline(".zgroup", "{}")
                           .AddInline("b/zarr.json", "v3")
                           .AddIndirect("b/c/0", 1, 5, 70)
                           .AddInline("b/c/1", "abc")
                           .AddInline("a/.zarray", "v2")
                           .AddInline("a/.zattrs", "{}")
                           .Build();
  const auto arrays = SummarizeArrays(*listing, 2);
  ASSERT_OK(arrays);
  ASSERT_EQ(arrays->size(), 2);
  const ArraySummary& a = (*arrays)[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.metadata_key, ".zarray");
  EXPECT_EQ(a.metadata, "v2");
  EXPECT_EQ(a.num_chunks, 0);
  const ArraySummary& b = (*arrays)[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.metadata_key, "zarr.json");
  EXPECT_EQ(b.metadata, "v3");
  EXPECT_EQ(b.num_chunks, 2);
  EXPECT_EQ(b.num_stored_bytes, 73);
  EXPECT_EQ(b.num_inline_chunks, 1);
}

TEST(ListsTheKeysOfChunks) {
  const auto listing = FakeListing()
                           .AddInline("a/zarr.json", "")
                           .AddInline("a/c/0", "")
                           .AddInline("a/b/.zarray", "")
                           .AddInline("a/b/0", "")
                           .AddInline("a/c/10", "")
                           .AddInline("a.b/0", "")
                           .Build();
  const auto keys = ChunkKeys(*listing, "a");
  ASSERT_OK(keys);
  EXPECT_EQ(*keys, std::vector<std::string_view>({"c/0", "c/10"}));
  const auto none = ChunkKeys(*listing, "c");
  ASSERT_OK(none);
  EXPECT_TRUE(none->empty());
}

TEST(RefusesHugeMetadata) {
  const auto listing =
      FakeListing().AddIndirect("a/.zarray", 0, 0, uint64_t{1} << 60).Build();
  const auto arrays = SummarizeArrays(*listing);
  ASSERT_FALSE(arrays.has_value());
  EXPECT_EQ(arrays.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(arrays.error().message, "a/.zarray");
}

TEST(ListsStrayKeysUpToALimit) {
  const auto listing = FakeListing()
                           .AddInline("a/.zarray", "")
                           .AddInline("b", "")
                           .AddInline("", "")
                           .AddInline("c", "")
                           .Build();
  const auto two = StrayKeys(*listing, 2);
  ASSERT_OK(two);
  EXPECT_EQ(*two, std::vector<std::string_view>({"", "b"}));
  const auto all = StrayKeys(*listing, 100);
  ASSERT_OK(all);
  EXPECT_EQ(all->size(), 3);
}

}  // namespace
}  // namespace relayout::rekey
