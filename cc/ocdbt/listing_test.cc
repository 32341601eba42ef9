#include "cc/ocdbt/listing.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

using Children = std::vector<InteriorEntry>;

/// Two leaves that refer to three files, in an order of their own.
std::string WriteSample(std::string_view name) {
  TestTree tree;
  tree.files.insert(
      tree.files.end(),
      {{"", "d/x"}, {"p/", "d/y"}, {"", "d/z"}, {"", "d/unused"}});
  Children children;
  children.push_back(tree.AddLeaf(std::vector{IndirectEntry("m/a", 3, 0, 5),
                                              InlineEntry("m/b", "inline"),
                                              IndirectEntry("m/c", 1, 2, 3)}));
  children.push_back(tree.AddLeaf(std::vector{IndirectEntry("m/d", 2, 4, 0),
                                              IndirectEntry("m/e", 3, 1, 2)}));
  const auto root = tree.AddInterior(1, children, true);
  const std::string directory = tree.Write(name, root, 1);
  WriteFile(directory, "d/x", "01234");
  WriteFile(directory, "p/d/y", "0123");
  WriteFile(directory, "d/z", "abcde");
  return directory;
}

/// The listing of a leaf with one value in file "d/x" of 10 bytes.
Result<Listing> ListValue(const std::string& name, const DataFileId& file,
                          uint64_t offset, uint64_t length) {
  TestTree tree;
  tree.files.push_back(file);
  const auto root =
      tree.AddLeaf(std::vector{IndirectEntry("key", 1, offset, length)}, true);
  const std::string directory = tree.Write(name, root, 0);
  WriteFile(directory, "d/x", "0123456789");
  WriteFile(directory, "../secret", "secret");
  return List(directory);
}

void ExpectCorrupt(const Result<Listing>& listing, std::string_view message) {
  ASSERT_FALSE(listing.has_value());
  EXPECT_EQ(listing.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(listing.error().message, message);
}

TEST(ListsEntriesFilesAndValues) {
  const std::string directory = WriteSample("sample");
  for (const int num_threads : {0, 1, 2, 8}) {
    const auto listing = List(directory, num_threads);
    ASSERT_OK(listing);
    EXPECT_EQ(listing->directory, directory);
    EXPECT_EQ(listing->generation, 1);
    EXPECT_EQ(listing->files,
              (std::vector<std::string>{"d/z", "d/x", "p/d/y"}));
    EXPECT_EQ(listing->file_sizes, (std::vector<uint64_t>{5, 5, 4}));
    std::string text;
    for (const Entry& entry : listing->entries) {
      const auto value = ReadValue(*listing, entry.value);
      ASSERT_OK(value);
      StrAppend(text, entry.key, "=", *value, " ");
    }
    EXPECT_EQ(text, "m/a=abcde m/b=inline m/c=234 m/d= m/e=bc ");
  }
}

TEST(EntriesOutliveTheMoveOfTheirListing) {
  auto listing = List(WriteSample("moved"));
  ASSERT_OK(listing);
  const Listing moved = *std::move(listing);
  EXPECT_EQ(moved.entries[1].key, "m/b");
  EXPECT_EQ(moved.entries[1].value.inline_bytes(), "inline");
}

TEST(ListsADatabaseWithoutKeys) {
  const std::string directory = NewDirectory("empty");
  Manifest manifest;
  manifest.files = {{"", ""}};
  manifest.versions = {{.generation = 3,
                        .root_height = 0,
                        .root = {DataRef::Missing(), {}},
                        .commit_time_ns = 0}};
  WriteFile(directory, std::string(kManifestName), *EncodeManifest(manifest));
  const auto listing = List(directory);
  ASSERT_OK(listing);
  EXPECT_EQ(listing->generation, 3);
  EXPECT_TRUE(listing->entries.empty());
  EXPECT_TRUE(listing->files.empty());
}

TEST(ListsANumberedDatabaseWithNothingWritten) {
  const std::string directory = NewDirectory("numbered");
  Manifest manifest;
  manifest.config.manifest_kind = ManifestKind::kNumbered;
  WriteFile(directory, std::string(kManifestName), *EncodeManifest(manifest));
  const auto listing = List(directory);
  ASSERT_OK(listing);
  EXPECT_EQ(listing->generation, 0);
  EXPECT_TRUE(listing->config.manifest_kind == ManifestKind::kNumbered);
}

TEST(ListsTheNewestVersion) {
  TestTree tree;
  const auto old = tree.AddLeaf(std::vector{InlineEntry("old", "")}, true);
  const auto fresh = tree.AddLeaf(std::vector{InlineEntry("new", "")}, true);
  const std::string directory = tree.Write("versions", old, 0);
  Manifest manifest = tree.MakeManifest(old, 0);
  manifest.versions.push_back(manifest.versions[0]);
  manifest.versions[1].generation = 4;
  manifest.versions[1].root = fresh.node;
  std::filesystem::remove(directory + "/manifest.ocdbt");
  WriteFile(directory, "manifest.ocdbt", *EncodeManifest(manifest));
  const auto listing = List(directory);
  ASSERT_OK(listing);
  EXPECT_EQ(listing->generation, 4);
  EXPECT_EQ(listing->entries[0].key, "new");
}

TEST(AcceptsRangesUpToTheEndOfTheFile) {
  EXPECT_OK(ListValue("whole", {"", "d/x"}, 0, 10));
  EXPECT_OK(ListValue("at_end", {"", "d/x"}, 10, 0));
}

TEST(CorruptRange) {
  ExpectCorrupt(ListValue("long", {"", "d/x"}, 4, 7),
                "key \"key\": range [4, +7) leaves data file \"d/x\" of 10");
  ExpectCorrupt(ListValue("after", {"", "d/x"}, 11, 0), "range [11, +0)");
  ExpectCorrupt(ListValue("overflow", {"", "d/x"}, 2, UINT64_MAX), "leaves");
  ExpectCorrupt(ListValue("huge", {"", "d/x"}, UINT64_MAX, 2), "leaves");
  ExpectCorrupt(ListValue("missing", {"", "d/x"}, UINT64_MAX, UINT64_MAX),
                "leaves");
}

TEST(CorruptPaths) {
  ExpectCorrupt(ListValue("up", {"", "../secret"}, 0, 1),
                "key \"key\": data file \"../secret\": path");
  ExpectCorrupt(ListValue("up_base", {"../", "secret"}, 0, 1), "component");
  ExpectCorrupt(ListValue("absolute", {"", "/etc/passwd"}, 0, 1), "absolute");
  ExpectCorrupt(ListValue("none", {"", "d/none"}, 0, 1), "No such file");
  ExpectCorrupt(ListValue("directory", {"", "d"}, 0, 1), "not a regular file");
}

TEST(CorruptLinkOutOfTheDirectory) {
  const std::string directory = WriteSample("link/inside");
  WriteFile(directory, "../outside", "01234");
  std::filesystem::remove(directory + "/d/x");
  std::filesystem::create_symlink("../../outside", directory + "/d/x");
  ExpectCorrupt(List(directory), "leads out");
}

TEST(CorruptWhenADataFileIsGone) {
  const std::string directory = WriteSample("gone");
  std::filesystem::remove(directory + "/d/nodes");
  ExpectCorrupt(List(directory), "data file \"d/nodes\": node at ");
}

TEST(CorruptValueWhoseFileShrank) {
  const std::string directory = WriteSample("shrank");
  const auto listing = List(directory);
  ASSERT_OK(listing);
  std::filesystem::resize_file(directory + "/d/z", 1);
  const auto value = ReadValue(*listing, listing->entries[0].value);
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(value.error().message, "data file \"d/z\"");
}

TEST(SystemErrorForAMissingDirectory) {
  const auto listing = List(testing::TempDir() + "/no_such_directory");
  ASSERT_FALSE(listing.has_value());
  EXPECT_EQ(listing.error().kind, ErrorKind::kSystem);
}

}  // namespace
}  // namespace relayout::ocdbt
