#include "cc/ocdbt/data_file_table.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/varint.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

/// The columns of a table as they stand, right or wrong.
std::string Table(uint64_t num_files,
                  std::initializer_list<uint64_t> prefix_lengths,
                  std::initializer_list<uint64_t> suffix_lengths,
                  std::initializer_list<uint64_t> base_lengths,
                  std::string_view suffixes) {
  std::string bytes;
  AppendVarint(bytes, num_files);
  for (const auto& column : {prefix_lengths, suffix_lengths, base_lengths}) {
    for (const uint64_t length : column) AppendVarint(bytes, length);
  }
  bytes += suffixes;
  return bytes;
}

Result<std::vector<DataFileId>> Decode(std::string_view bytes,
                                       std::string_view transitive_path = "") {
  ByteReader reader(bytes);
  auto files = DecodeDataFileTable(reader, transitive_path);
  if (files.has_value()) EXPECT_EQ(reader.num_remaining(), 0);
  return files;
}

void ExpectCorrupt(std::string_view bytes, std::string_view message) {
  const auto files = Decode(bytes);
  ASSERT_FALSE(files.has_value());
  EXPECT_EQ(files.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(files.error().message, message);
}

TEST(DecodesPrefixes) {
  const auto files =
      Decode(Table(3, {4, 2}, {6, 2, 1}, {2, 2, 0}, "d/abcdXYc"));
  // The third shares "d/" but has no base path: it may share no more than that.
  ASSERT_FALSE(files.has_value());
  const auto good =
      Decode(Table(3, {4, 0}, {6, 2, 3}, {2, 2, 0}, "d/abcdXYd/c"));
  ASSERT_OK(good);
  EXPECT_TRUE(*good == (std::vector<DataFileId>{
                           {"d/", "abcd"}, {"d/", "abXY"}, {"", "d/c"}}));
}

TEST(PutsTheTransitivePathFirst) {
  const auto files = Decode(Table(2, {0}, {3, 3}, {0, 2}, "d/1p/2"), "base/");
  ASSERT_OK(files);
  EXPECT_EQ((*files)[0].base_path, "base/");
  EXPECT_EQ((*files)[0].path(), "base/d/1");
  EXPECT_EQ((*files)[1].base_path, "base/p/");
  EXPECT_EQ((*files)[1].path(), "base/p/2");
}

TEST(RoundTripsTheFilesUsed) {
  const std::vector<DataFileId> files = {
      {"", "d/unused"}, {"p1/", "d/b"}, {"", "d/a"}, {"p1/", "d/a"},
      {"p1/x/", "d/a"}, {"", ""},       {"p2/", ""}, {"", "d/a"}};
  DataFileTableEncoder encoder(files);
  for (const uint32_t file : {7, 6, 5, 4, 3, 2, 1, 1, 2, 1}) {
    ASSERT_OK(encoder.Use(file));
  }
  std::string bytes;
  encoder.AppendTo(bytes);
  const auto back = Decode(bytes);
  ASSERT_OK(back);
  ASSERT_EQ(back->size(), 7);
  for (uint32_t file = 1; file < files.size(); ++file) {
    EXPECT_TRUE((*back)[encoder.Index(file)] == files[file]);
  }
}

TEST(EncodesAnEmptyTable) {
  DataFileTableEncoder encoder({});
  std::string bytes;
  encoder.AppendTo(bytes);
  EXPECT_EQ(bytes, std::string(1, '\0'));
  EXPECT_EQ(Decode(bytes)->size(), 0);
}

TEST(InvalidFiles) {
  const std::vector<DataFileId> files = {{"", std::string(65535, 'a')},
                                         {"b", std::string(65535, 'a')}};
  DataFileTableEncoder encoder(files);
  EXPECT_OK(encoder.Use(0));
  for (const uint32_t file : {1, 2}) {
    const Status status = encoder.Use(file);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalidArgument);
  }
}

TEST(CorruptCount) {
  ExpectCorrupt("", "number of data files");
  ExpectCorrupt(Table(UINT32_MAX, {}, {}, {}, "abc"), "exceeds the 3 bytes");
  ExpectCorrupt(Table(UINT64_MAX, {}, {}, {}, "abc"), "exceeds the limit");
}

TEST(CorruptWhenCutAnywhere) {
  const std::string bytes =
      Table(3, {4, 0}, {6, 2, 3}, {2, 2, 0}, "d/abcdXYd/c");
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(Decode(bytes.substr(0, size)).has_value());
  }
}

TEST(CorruptPrefixLength) {
  ExpectCorrupt(Table(2, {4}, {3, 1}, {0, 0}, "d/1x"),
                "path prefix length 4 of file 1 exceeds previous path's 3");
  ExpectCorrupt(Table(2, {70000}, {3, 1}, {0, 0}, "d/1x"),
                "path prefix length 70000 of entry 0 exceeds the limit");
}

TEST(CorruptPathLength) {
  ExpectCorrupt(
      Table(2, {3}, {3, 65533}, {0, 0}, "d/1" + std::string(65533, 'x')),
      "path length 65536 of file 1 exceeds the limit of 65535");
  const std::string longest =
      Table(1, {}, {65535}, {0}, std::string(65535, 'x'));
  EXPECT_OK(Decode(longest));
  EXPECT_FALSE(Decode(longest, "b").has_value());
  EXPECT_FALSE(
      Decode(Table(0, {}, {}, {}, ""), std::string(65536, 'b')).has_value());
}

TEST(CorruptBaseLength) {
  ExpectCorrupt(Table(1, {}, {3}, {4}, "d/1"),
                "base path length 4 of file 0 exceeds path length 3");
  ExpectCorrupt(Table(2, {3}, {3, 1}, {2, 0}, "d/1x"),
                "leaves the base paths, of 2 and 0 bytes");
  ExpectCorrupt(Table(2, {3}, {3, 1}, {0, 2}, "d/1x"),
                "leaves the base paths, of 0 and 2 bytes");
}

/// Few bytes must not become many.
TEST(CorruptTableOfRepeatedPaths) {
  std::string bytes;
  const size_t num_files = 100'000;
  AppendVarint(bytes, num_files);
  for (size_t i = 1; i < num_files; ++i) AppendVarint(bytes, 65535);
  AppendVarint(bytes, 65535);
  for (size_t i = 1; i < num_files; ++i) AppendVarint(bytes, 0);
  for (size_t i = 0; i < num_files; ++i) AppendVarint(bytes, 0);
  bytes.append(65535, 'x');
  ExpectCorrupt(bytes, "data file table of 6553500000 bytes");
}

}  // namespace
}  // namespace relayout::ocdbt
