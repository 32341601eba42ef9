#include "cc/rekey/array_index.h"

#include <string>
#include <vector>

#include "cc/rekey/fake_listing.h"
#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

using Keys = std::vector<std::string>;

std::shared_ptr<const ocdbt::Listing> ListingOf(const Keys& keys) {
  FakeListing fake;
  for (const std::string& key : keys) fake.AddInline(key, "");
  return fake.Build();
}

Keys KeysIn(const ocdbt::Listing& listing,
            const std::vector<EntryRange>& ranges) {
  Keys keys;
  for (const auto& [min, max] : ranges) {
    for (size_t i = min; i < max; ++i) {
      keys.emplace_back(listing.entries[i].key);
    }
  }
  return keys;
}

/// The keys of array `name`, or {"none"}.
Keys KeysOf(const ocdbt::Listing& listing, const ArrayIndex& index,
            std::string_view name) {
  const ArrayEntries* array = index.Find(name);
  return array == nullptr ? Keys{"none"} : KeysIn(listing, array->ranges);
}

TEST(IndexesAnEmptyListing) {
  const auto index = IndexArrays(ocdbt::Listing());
  ASSERT_OK(index);
  EXPECT_TRUE(index->arrays.empty());
  EXPECT_TRUE(index->stray.empty());
}

TEST(TellsNamesThatShareAPrefixApart) {
  const auto listing = ListingOf({"a/.zarray", "a/0", "a.b/.zarray", "a.b/0",
                                  "a0/.zarray", "a0/0", "a!/.zarray", "a!/0"});
  const auto index = IndexArrays(*listing);
  ASSERT_OK(index);
  EXPECT_EQ(index->arrays.size(), 4);
  EXPECT_EQ(KeysOf(*listing, *index, "a"), Keys({"a/.zarray", "a/0"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a.b"), Keys({"a.b/.zarray", "a.b/0"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a0"), Keys({"a0/.zarray", "a0/0"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a!"), Keys({"a!/.zarray", "a!/0"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a/"), Keys({"none"}));
  EXPECT_TRUE(index->stray.empty());
}

TEST(GivesKeysToTheInnermostArray) {
  const auto listing =
      ListingOf({"a/.zarray", "a/0", "a/b/.zarray", "a/b/0", "a/b/c/zarr.json",
                 "a/b/c/c/0", "a/b/d", "a/b.x", "a/z"});
  const auto index = IndexArrays(*listing);
  ASSERT_OK(index);
  EXPECT_EQ(KeysOf(*listing, *index, "a"),
            Keys({"a/.zarray", "a/0", "a/b.x", "a/z"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a/b"),
            Keys({"a/b/.zarray", "a/b/0", "a/b/d"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a/b/c"),
            Keys({"a/b/c/c/0", "a/b/c/zarr.json"}));
}

TEST(FindsStrayKeys) {
  const auto listing =
      ListingOf({".zgroup", "a", "a/.zarray", "a/0", "b/.zattrs", "zarr.json"});
  const auto index = IndexArrays(*listing);
  ASSERT_OK(index);
  EXPECT_EQ(KeysIn(*listing, index->stray),
            Keys({".zgroup", "a", "b/.zattrs", "zarr.json"}));
  EXPECT_EQ(index->arrays.size(), 1);
}

TEST(SortsBytesUnsigned) {
  const auto listing = ListingOf({"\xff/.zarray", "\xff/0", "a\xc3\xa9/.zarray",
                                  "a\xc3\xa9/0", "a/.zarray", "a/0"});
  const auto index = IndexArrays(*listing);
  ASSERT_OK(index);
  EXPECT_EQ(KeysOf(*listing, *index, "\xff"), Keys({"\xff/.zarray", "\xff/0"}));
  EXPECT_EQ(KeysOf(*listing, *index, "a"), Keys({"a/.zarray", "a/0"}));
}

TEST(AcceptsAnEmptyName) {
  const auto listing = ListingOf({"/.zarray", "/0", "/a/.zarray", "0"});
  const auto index = IndexArrays(*listing);
  ASSERT_OK(index);
  EXPECT_EQ(KeysOf(*listing, *index, ""), Keys({"/.zarray", "/0"}));
  EXPECT_EQ(KeysIn(*listing, index->stray), Keys({"0"}));
}

TEST(CorruptTwoFormatsOfMetadata) {
  const auto listing = ListingOf({"a/.zarray", "a/0", "a/zarr.json"});
  const auto index = IndexArrays(*listing);
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(index.error().message, "\"a\"");
}

}  // namespace
}  // namespace relayout::rekey
