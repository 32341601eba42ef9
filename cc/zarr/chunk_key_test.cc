#include "cc/zarr/chunk_key.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/testing/test.h"

namespace relayout::zarr {
namespace {

using Style = ChunkKeyFormat::Style;
using Index = std::vector<uint64_t>;

constexpr ChunkKeyFormat kV2Dot = {Style::kV2, '.'};
constexpr ChunkKeyFormat kV2Slash = {Style::kV2, '/'};
constexpr ChunkKeyFormat kDefaultDot = {Style::kDefault, '.'};
constexpr ChunkKeyFormat kDefaultSlash = {Style::kDefault, '/'};

struct Spelling {
  ChunkKeyFormat format;
  Index index;
  std::string key;
};

std::vector<Spelling> Spellings() {
  return {
      {kV2Dot, {}, "0"},
      {kV2Dot, {0}, "0"},
      {kV2Dot, {7, 0, 12}, "7.0.12"},
      {kV2Slash, {7, 0}, "7/0"},
      {kDefaultDot, {1, 2}, "c.1.2"},
      {kDefaultSlash, {}, "c"},
      {kDefaultSlash, {0}, "c/0"},
      {kDefaultSlash, {1, 2}, "c/1/2"},
      {kV2Dot, {UINT64_MAX}, "18446744073709551615"},
  };
}

TEST(AppendsSpelling) {
  for (const auto& [format, index, key] : Spellings()) {
    std::string out = "x/";
    AppendChunkKey(index, format, out);
    EXPECT_EQ(out, "x/" + key);
  }
}

TEST(ParsesSpelling) {
  for (const auto& [format, index, key] : Spellings()) {
    Index parsed(index.size());
    EXPECT_OK(ParseChunkKey(key, format, parsed));
    EXPECT_EQ(parsed, index);
  }
}

void ExpectCorrupt(std::string_view key, ChunkKeyFormat format, size_t rank) {
  Index parsed(rank);
  const Status status = ParseChunkKey(key, format, parsed);
  if (!EXPECT_FALSE(status.has_value())) return;
  EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
}

TEST(RefusesOtherSpellingsV2) {
  for (const std::string_view key : {"",
                                     ".",
                                     "1",
                                     "1.",
                                     ".1",
                                     "1.2.3",
                                     "01.2",
                                     "1.00",
                                     "+1.2",
                                     "-1.2",
                                     "1. 2",
                                     " 1.2",
                                     "1.2 ",
                                     "1/2",
                                     "c/1/2",
                                     "1.a",
                                     "0x1.2",
                                     "1..2",
                                     "18446744073709551616.0",
                                     "99999999999999999999999.0"}) {
    ExpectCorrupt(key, kV2Dot, 2);
  }
  ExpectCorrupt("1", kV2Dot, 0);
  ExpectCorrupt("00", kV2Dot, 0);
  ExpectCorrupt("", kV2Dot, 0);
  ExpectCorrupt(std::string_view("1.2\0", 4), kV2Dot, 2);
}

TEST(RefusesOtherSpellingsDefault) {
  for (const std::string_view key :
       {"", "c", "c/", "c/1", "c/1/", "c/1/2/", "c/1/2/3", "c1/2", "1/2",
        "C/1/2", "c.1.2", "c/1.2", "c//1", "c/01/2"}) {
    ExpectCorrupt(key, kDefaultSlash, 2);
  }
  ExpectCorrupt("c/0", kDefaultSlash, 0);
  ExpectCorrupt("0", kDefaultSlash, 0);
}

}  // namespace
}  // namespace relayout::zarr
