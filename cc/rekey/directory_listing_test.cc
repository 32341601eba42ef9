#include "cc/rekey/directory_listing.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cc/base/str_cat.h"
#include "cc/rekey/array_summary.h"
#include "cc/rekey/read_key.h"
#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

namespace fs = std::filesystem;

/// Makes a new directory with files; those without content are empty.
class Tree {
 public:
  explicit Tree(const std::string& name)
      : path_(fs::path(testing::TempDir()) / name) {
    fs::create_directories(path_);
  }

  Tree& Add(const std::string& path, const std::string& content = "") {
    fs::create_directories((path_ / path).parent_path());
    std::ofstream(path_ / path) << content;
    return *this;
  }

  Tree& AddLink(const std::string& path, const std::string& to) {
    fs::create_directories((path_ / path).parent_path());
    fs::create_symlink(to, path_ / path);
    return *this;
  }

  const fs::path& path() const { return path_; }

  Result<ocdbt::Listing> List(int num_threads = 1) const {
    return ListDirectory(path_, num_threads);
  }

 private:
  fs::path path_;
};

std::vector<std::string> Keys(const ocdbt::Listing& listing) {
  std::vector<std::string> keys;
  for (const ocdbt::Entry& entry : listing.entries)
    keys.emplace_back(entry.key);
  return keys;
}

void ExpectError(const Tree& tree, ErrorKind kind, std::string_view part) {
  const auto listing = tree.List();
  if (!EXPECT_FALSE(listing.has_value())) return;
  EXPECT_EQ(listing.error().kind, kind);
  EXPECT_CONTAINS(listing.error().message, part);
}

TEST(ListsTheFilesOfArrays) {
  Tree tree("arrays");
  tree.Add("a.b/.zarray", "{}").Add("a.b/0.0", "xyz").Add("a.b/1.0");
  tree.Add("n/c/zarr.json", "{}").Add("n/c/c/0/1", "12");
  tree.Add("_METADATA", "no").Add("array_metadatas/process_0", "no");
  tree.Add(".zgroup", "no").Add("n/.zgroup", "no");
  const auto listing = tree.List();
  ASSERT_OK(listing);
  EXPECT_EQ(Keys(*listing),
            std::vector<std::string>({"a.b/.zarray", "a.b/0.0", "a.b/1.0",
                                      "n/c/c/0/1", "n/c/zarr.json"}));
  EXPECT_EQ(listing->files, Keys(*listing));
  EXPECT_EQ(listing->file_sizes, std::vector<uint64_t>({2, 3, 0, 2, 2}));
  EXPECT_EQ(listing->directory, tree.path().string());
  const auto* entry = FindEntry(*listing, "a.b/0.0");
  ASSERT_TRUE(entry != nullptr);
  EXPECT_EQ(ocdbt::ReadValue(*listing, entry->value).value_or(""), "xyz");
  const auto arrays = SummarizeArrays(*listing);
  ASSERT_OK(arrays);
  ASSERT_EQ(arrays->size(), 2);
  EXPECT_EQ((*arrays)[0].num_chunks, 2);
  EXPECT_EQ((*arrays)[1].name, "n/c");
}

TEST(TakesTheRootForNoArray) {
  Tree tree("root_metadata");
  tree.Add("zarr.json", "a group").Add("0.0").Add("a/zarr.json");
  const auto listing = tree.List();
  ASSERT_OK(listing);
  EXPECT_EQ(Keys(*listing), std::vector<std::string>({"a/zarr.json"}));
}

TEST(ListsAnArrayInsideAnother) {
  Tree tree("nested");
  tree.Add("a/.zarray").Add("a/0").Add("a/b/.zarray").Add("a/b/0");
  const auto listing = tree.List();
  ASSERT_OK(listing);
  EXPECT_EQ(Keys(*listing), std::vector<std::string>(
                                {"a/.zarray", "a/0", "a/b/.zarray", "a/b/0"}));
}

TEST(DoesNotDependOnTheNumberOfThreads) {
  Tree tree("threads");
  for (int i = 0; i < 700; ++i) {
    const std::string name = StrCat("a", i % 7);
    tree.Add(StrCat(name, "/.zarray")).Add(StrCat(name, "/", i), "x");
  }
  const auto one = tree.List(1);
  const auto many = tree.List(8);
  ASSERT_OK(one);
  ASSERT_OK(many);
  EXPECT_EQ(one->entries.size(), 707);
  EXPECT_EQ(Keys(*one), Keys(*many));
  EXPECT_EQ(one->config.uuid, many->config.uuid);
}

TEST(TellsCheckpointsApart) {
  Tree tree("uuid");
  tree.Add("a/.zarray").Add("a/0", "12");
  const auto before = tree.List();
  const auto again = tree.List();
  tree.Add("a/0", "123");
  const auto longer = tree.List();
  fs::last_write_time(tree.path() / "a/0",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const auto later = tree.List();
  ASSERT_OK(before);
  ASSERT_OK(again);
  ASSERT_OK(longer);
  ASSERT_OK(later);
  EXPECT_EQ(before->config.uuid, again->config.uuid);
  EXPECT_NE(before->config.uuid, longer->config.uuid);
  EXPECT_NE(longer->config.uuid, later->config.uuid);
}

TEST(PassesOverLocks) {
  Tree tree("locks");
  tree.Add("a/.zarray").Add("a/0.__lock").Add("a/0");
  const auto listing = tree.List();
  ASSERT_OK(listing);
  EXPECT_EQ(Keys(*listing), std::vector<std::string>({"a/.zarray", "a/0"}));
}

TEST(FollowsALinkToAFileOfTheTree) {
  Tree tree("link_inside");
  tree.Add("shared", "12345").Add("a/.zarray").AddLink("a/0", "../shared");
  const auto listing = tree.List();
  ASSERT_OK(listing);
  const auto* entry = FindEntry(*listing, "a/0");
  ASSERT_TRUE(entry != nullptr);
  EXPECT_EQ(ocdbt::ReadValue(*listing, entry->value).value_or(""), "12345");
}

TEST(IgnoresLinksToFilesBesideTheArrays) {
  Tree tree("link_beside");
  tree.Add("a/.zarray").AddLink("note", "nowhere").AddLink("null", "/dev/null");
  EXPECT_OK(tree.List());
}

TEST(RefusesLinksThatLeaveTheTree) {
  const fs::path outside = Tree("outside").Add("a/.zarray").path();
  Tree file("link_file");
  file.Add("a/.zarray").AddLink("a/0", outside / "a/.zarray");
  ExpectError(file, ErrorKind::kCorrupt, "\"a/0\"");
  Tree up("link_up");
  up.Add("a/.zarray").AddLink("a/up", "..");
  ExpectError(up, ErrorKind::kCorrupt, "\"a/up\"");
  Tree directory("link_directory");
  directory.AddLink("a", outside / "a");
  ExpectError(directory, ErrorKind::kCorrupt, "\"a\"");
  Tree chunks("link_chunks");
  chunks.Add("a/zarr.json").AddLink("a/c", outside);
  ExpectError(chunks, ErrorKind::kCorrupt, "\"a/c\"");
}

TEST(RefusesLinksThatLeadNowhere) {
  Tree tree("link_nowhere");
  tree.Add("a/.zarray").AddLink("a/0", "nowhere");
  ExpectError(tree, ErrorKind::kCorrupt, "\"a/0\"");
  Tree loop("link_loop");
  loop.Add("a/.zarray").AddLink("a/0", "0");
  ExpectError(loop, ErrorKind::kCorrupt, "\"a/0\"");
}

TEST(RefusesLinksToDirectoriesOfTheTree) {
  Tree tree("link_circle");
  tree.Add("a/.zarray").AddLink("a/circle", ".");
  ExpectError(tree, ErrorKind::kUnsupported, "\"a/circle\"");
  Tree beside("link_twice");
  beside.Add("a/.zarray").AddLink("b", "a");
  ExpectError(beside, ErrorKind::kUnsupported, "\"b\"");
}

TEST(RefusesPipes) {
  Tree tree("pipe");
  tree.Add("a/.zarray");
  ASSERT_EQ(::mkfifo((tree.path() / "a/0").c_str(), 0600), 0);
  ExpectError(tree, ErrorKind::kCorrupt, "\"a/0\"");
  Tree metadata("pipe_metadata");
  metadata.Add("a/0");
  ASSERT_EQ(::mkfifo((metadata.path() / "a/.zarray").c_str(), 0600), 0);
  ExpectError(metadata, ErrorKind::kCorrupt, "\"a/.zarray\"");
}

TEST(RefusesWhatIsNoDirectory) {
  Tree tree("not_there");
  for (const char* name : {"absent", "file"}) {
    tree.Add("file");
    const auto listing = ListDirectory(tree.path() / name);
    ASSERT_FALSE(listing.has_value());
    EXPECT_EQ(listing.error().kind, ErrorKind::kSystem);
  }
}

}  // namespace
}  // namespace relayout::rekey
