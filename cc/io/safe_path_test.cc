#include "cc/io/safe_path.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "cc/base/result.h"
#include "cc/testing/test.h"

namespace relayout::io {
namespace {

namespace fs = std::filesystem;
using std::string_view_literals::operator""sv;

void ExpectCorrupt(const auto& result, std::string_view message) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(result.error().message, message);
}

/// Makes `<name>/item/d/file` and `<name>/outside`; returns the real root.
std::string MakeRoot(const std::string& name) {
  const std::string base = testing::TempDir() + "/" + name;
  fs::create_directories(base + "/item/d");
  std::ofstream(base + "/item/d/file") << "x";
  std::ofstream(base + "/outside") << "secret";
  return *RealDirectory(base + "/item");
}

TEST(AcceptsPlainRelativePaths) {
  for (const auto path :
       {"d/1f", "ocdbt.process_0/d/1f", "a", "..a/b..", "a b"}) {
    EXPECT_OK(CheckRelativePath(path));
  }
}

TEST(CorruptSpellings) {
  ExpectCorrupt(CheckRelativePath(""), "empty");
  ExpectCorrupt(CheckRelativePath("/etc/passwd"), "absolute");
  ExpectCorrupt(CheckRelativePath("d/\0x"sv), "zero byte");
  for (const auto path :
       {"..", "../x", "d/../../x", "d/..", "a//b", "a/", "./a", "a/./b", "."}) {
    ExpectCorrupt(CheckRelativePath(path), "component");
  }
}

TEST(ResolvesFilesBelowTheRoot) {
  const std::string root = MakeRoot("plain");
  EXPECT_EQ(*ResolveBelow(root, "d/file"), root + "/d/file");
}

TEST(FollowsLinksThatStayBelowTheRoot) {
  const std::string root = MakeRoot("inner_link");
  fs::create_symlink("d", root + "/e");
  fs::create_symlink(root + "/d/file", root + "/absolute");
  EXPECT_EQ(*ResolveBelow(root, "e/file"), root + "/d/file");
  EXPECT_EQ(*ResolveBelow(root, "absolute"), root + "/d/file");
}

TEST(CorruptLinksThatLeaveTheRoot) {
  const std::string root = MakeRoot("outer_link");
  fs::create_symlink("../outside", root + "/file_link");
  fs::create_symlink("..", root + "/directory_link");
  fs::create_symlink("/etc/passwd", root + "/absolute_link");
  fs::create_symlink("file_link", root + "/link_link");
  fs::create_symlink(".", root + "/self");
  for (const auto path : {"file_link", "directory_link/outside",
                          "absolute_link", "link_link", "self"}) {
    ExpectCorrupt(ResolveBelow(root, path), "leads out");
  }
}

TEST(CorruptSiblingWhoseNameBeginsWithTheRoot) {
  const std::string root = MakeRoot("sibling");
  std::ofstream(root + "x") << "secret";
  fs::create_symlink("../itemx", root + "/link");
  ExpectCorrupt(ResolveBelow(root, "link"), "leads out");
}

TEST(CorruptMissingFilesAndCircles) {
  const std::string root = MakeRoot("missing");
  fs::create_symlink("circle", root + "/circle");
  ExpectCorrupt(ResolveBelow(root, "d/none"), "No such file");
  ExpectCorrupt(ResolveBelow(root, "d/file/x"), "Not a directory");
  ExpectCorrupt(ResolveBelow(root, "circle"), "symbolic links");
}

TEST(SystemErrorForAMissingRoot) {
  const auto root = RealDirectory(testing::TempDir() + "/none");
  ASSERT_FALSE(root.has_value());
  EXPECT_EQ(root.error().kind, ErrorKind::kSystem);
}

}  // namespace
}  // namespace relayout::io
