#include "cc/io/file_writer.h"

#include <filesystem>
#include <string>

#include "cc/base/result.h"
#include "cc/io/file_reader.h"
#include "cc/testing/test.h"

namespace relayout::io {
namespace {

TEST(WritesWhatIsAppended) {
  const std::string path = testing::TempDir() + "/appended";
  auto writer = FileWriter::Create(path);
  ASSERT_OK(writer);
  EXPECT_OK(writer->Append("one"));
  EXPECT_OK(writer->Append(""));
  EXPECT_OK(writer->Append("two"));
  EXPECT_EQ(writer->num_bytes(), 6);
  EXPECT_OK(writer->Finish());
  const auto reader = FileReader::Open(path, ErrorKind::kSystem);
  ASSERT_OK(reader);
  EXPECT_EQ(reader->Read(0, 6)->bytes(), "onetwo");
  EXPECT_OK(SyncDirectory(testing::TempDir()));
}

TEST(ClosesWithoutSyncing) {
  const std::string path = testing::TempDir() + "/closed";
  auto writer = FileWriter::Create(path);
  ASSERT_OK(writer);
  EXPECT_OK(writer->Append("abc"));
  EXPECT_OK(writer->Close());
  EXPECT_EQ(std::filesystem::file_size(path), 3);
}

TEST(WritebackChangesNothing) {
  const std::string path = testing::TempDir() + "/writeback";
  auto writer = FileWriter::Create(path);
  ASSERT_OK(writer);
  writer->StartWriteback();
  EXPECT_OK(writer->Append("abc"));
  writer->StartWriteback();
  EXPECT_OK(writer->Append("def"));
  EXPECT_OK(writer->Finish());
  const auto reader = FileReader::Open(path, ErrorKind::kSystem);
  ASSERT_OK(reader);
  EXPECT_EQ(reader->Read(0, 6)->bytes(), "abcdef");
}

TEST(NeverOverwrites) {
  const std::string path = testing::TempDir() + "/exists";
  ASSERT_OK(FileWriter::Create(path));
  const auto again = FileWriter::Create(path);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().kind, ErrorKind::kSystem);
  EXPECT_CONTAINS(again.error().message, "File exists");
}

TEST(NeverFollowsALink) {
  const std::string link = testing::TempDir() + "/dangling";
  std::filesystem::create_symlink("nowhere", link);
  EXPECT_FALSE(FileWriter::Create(link).has_value());
  EXPECT_FALSE(std::filesystem::exists(testing::TempDir() + "/nowhere"));
}

TEST(NamesTheMissingDirectory) {
  const auto writer = FileWriter::Create(testing::TempDir() + "/no/file");
  ASSERT_FALSE(writer.has_value());
  EXPECT_CONTAINS(writer.error().message, "/no/file");
  EXPECT_FALSE(SyncDirectory(testing::TempDir() + "/no").has_value());
}

}  // namespace
}  // namespace relayout::io
