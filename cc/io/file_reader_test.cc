#include "cc/io/file_reader.h"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "cc/base/result.h"
#include "cc/testing/test.h"

namespace relayout::io {
namespace {

std::string WriteFile(std::string_view name, std::string_view content) {
  const std::string path = testing::TempDir() + "/" + std::string(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(ReadsRanges) {
  const auto reader =
      FileReader::Open(WriteFile("ranges", "0123456789"), ErrorKind::kSystem);
  ASSERT_OK(reader);
  EXPECT_EQ(reader->size(), 10);
  EXPECT_EQ(reader->Read(0, 10)->bytes(), "0123456789");
  EXPECT_EQ(reader->Read(3, 4)->bytes(), "3456");
  EXPECT_EQ(reader->Read(10, 0)->bytes(), "");
}

TEST(ReadsIntoMemory) {
  const auto reader =
      FileReader::Open(WriteFile("into", "0123456789"), ErrorKind::kSystem);
  ASSERT_OK(reader);
  std::string output = "....";
  ASSERT_OK(reader->ReadInto(6, output));
  EXPECT_EQ(output, "6789");
  const auto status = reader->ReadInto(7, output);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(status.error().message, "range [7, +4) leaves the file");
}

TEST(CorruptRangeBeyondTheEnd) {
  const auto reader =
      FileReader::Open(WriteFile("beyond", "0123456789"), ErrorKind::kSystem);
  ASSERT_OK(reader);
  const struct {
    uint64_t offset, length;
  } cases[] = {{0, 11},         {10, 1},         {11, 0},
               {UINT64_MAX, 1}, {5, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}};
  for (const auto& [offset, length] : cases) {
    const auto result = reader->Read(offset, length);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
    EXPECT_CONTAINS(result.error().message, "leaves the file of 10 bytes");
  }
}

TEST(CorruptWhenTheFileShrinks) {
  const std::string path = WriteFile("shrinks", "0123456789");
  const auto reader = FileReader::Open(path, ErrorKind::kSystem);
  ASSERT_OK(reader);
  std::filesystem::resize_file(path, 4);
  const auto result = reader->Read(0, 10);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(result.error().message, "shrank to 4 of 10 bytes");
}

TEST(MissingFileIsOfTheKindAskedFor) {
  const std::string path = testing::TempDir() + "/missing";
  for (const auto kind : {ErrorKind::kCorrupt, ErrorKind::kSystem}) {
    const auto reader = FileReader::Open(path, kind);
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().kind, kind);
    EXPECT_CONTAINS(reader.error().message, "No such file");
    EXPECT_CONTAINS(reader.error().message, "missing");
  }
}

TEST(CorruptWhenNoRegularFile) {
  const std::string directory = testing::TempDir() + "/directory";
  const std::string pipe = testing::TempDir() + "/pipe";
  std::filesystem::create_directory(directory);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& path : {directory, pipe}) {
    const auto reader = FileReader::Open(path, ErrorKind::kSystem);
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().kind, ErrorKind::kCorrupt);
    EXPECT_CONTAINS(reader.error().message, "not a regular file");
  }
}

}  // namespace
}  // namespace relayout::io
