#include "cc/io/directory.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cc/testing/test.h"

namespace relayout::io {
namespace {

namespace fs = std::filesystem;

fs::path NewDirectory(const std::string& name) {
  const fs::path path = fs::path(testing::TempDir()) / name;
  fs::create_directories(path);
  return path;
}

TEST(ReadsEntriesInOrder) {
  const fs::path path = NewDirectory("entries");
  std::ofstream(path / "b") << "12345";
  fs::create_directory(path / "a");
  fs::create_symlink("nowhere", path / "d");
  ASSERT_EQ(::mkfifo((path / "c").c_str(), 0600), 0);
  const auto entries = ReadDirectory(path);
  ASSERT_OK(entries);
  std::string found;
  std::vector<FileKind> kinds;
  for (const DirectoryEntry& entry : *entries) {
    found += entry.name;
    kinds.push_back(entry.kind);
  }
  EXPECT_EQ(found, "abcd");
  EXPECT_TRUE(kinds == std::vector({FileKind::kDirectory, FileKind::kRegular,
                                    FileKind::kOther, FileKind::kLink}));
}

TEST(RefusesWhatIsNoDirectory) {
  const fs::path path = NewDirectory("none");
  std::ofstream(path / "file") << "";
  fs::create_directory_symlink(path, path / "link");
  for (const char* name : {"file", "link", "absent"}) {
    const auto entries = ReadDirectory(path / name);
    ASSERT_FALSE(entries.has_value());
    EXPECT_EQ(entries.error().kind, ErrorKind::kSystem);
    EXPECT_CONTAINS(entries.error().message, name);
  }
}

TEST(StatsThroughLinks) {
  const fs::path path = NewDirectory("stat");
  std::ofstream(path / "file") << "12345";
  fs::create_symlink("file", path / "link");
  const auto status = StatFile(path / "link");
  ASSERT_OK(status);
  EXPECT_TRUE(status->kind == FileKind::kRegular);
  EXPECT_EQ(status->num_bytes, 5);
  EXPECT_TRUE(status->modified_ns > 1'000'000'000'000'000'000);
}

TEST(NamesWhatLeadsNowhere) {
  const fs::path path = NewDirectory("nowhere");
  fs::create_symlink("loop", path / "loop");
  for (const char* name : {"loop", "absent"}) {
    const auto status = StatFile(path / name);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
    EXPECT_CONTAINS(status.error().message, name);
  }
}

}  // namespace
}  // namespace relayout::io
