#include "cc/zarr/shard_index.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cc/testing/test.h"

namespace relayout::zarr {
namespace {

constexpr std::string_view kData = "0123456789";

/// A shard of three chunks in 10 bytes of data, the middle one absent.
ShardIndex SomeIndex() {
  return {ShardRange{4, 6}, std::nullopt, ShardRange{0, 4}};
}

std::string ShardWith(const ShardIndex& index, const ShardIndexFormat& format) {
  const std::string bytes = EncodeShardIndex(index, format.has_checksum);
  return format.is_at_end ? std::string(kData) + bytes
                          : bytes + std::string(kData);
}

void ExpectCorrupt(std::string_view value, const ShardIndexFormat& format,
                   std::string_view message) {
  const Result<ShardIndex> index = DecodeShardIndex(value, format);
  if (!EXPECT_FALSE(index.has_value())) return;
  EXPECT_EQ(index.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(index.error().message, message);
}

TEST(EncodesKnownBytes) {
  const std::string bytes = EncodeShardIndex(
      ShardIndex{ShardRange{0x0102, 3}, std::nullopt}, /*has_checksum=*/false);
  const std::string_view want(
      "\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
      32);
  EXPECT_EQ(bytes, want);
}

TEST(RoundTrips) {
  for (const bool has_checksum : {false, true}) {
    for (const bool is_at_end : {false, true}) {
      const ShardIndexFormat format = {3, has_checksum, is_at_end};
      const Result<ShardIndex> index =
          DecodeShardIndex(ShardWith(SomeIndex(), format), format);
      ASSERT_OK(index);
      EXPECT_EQ(*index, SomeIndex());
    }
  }
}

TEST(DecodesAShardWithoutChunks) {
  const ShardIndexFormat format = {0, /*has_checksum=*/false};
  const Result<ShardIndex> index = DecodeShardIndex("", format);
  ASSERT_OK(index);
  EXPECT_TRUE(index->empty());
}

TEST(CorruptTooShort) {
  const ShardIndexFormat format = {3};
  const std::string value = ShardWith(SomeIndex(), format);
  ExpectCorrupt("", format, "shorter");
  ExpectCorrupt(std::string_view(value).substr(11), format, "shorter");
}

TEST(CorruptChecksum) {
  const ShardIndexFormat format = {3};
  const std::string value = ShardWith(SomeIndex(), format);
  for (size_t i = kData.size(); i < value.size(); ++i) {
    std::string damaged = value;
    damaged[i] ^= 1;
    ExpectCorrupt(damaged, format, "CRC-32C");
  }
}

TEST(CorruptRanges) {
  const ShardIndexFormat format = {1};
  const uint64_t num_bytes = kData.size() + 20;
  for (const ShardRange range :
       {ShardRange{0, num_bytes + 1}, ShardRange{num_bytes, 1},
        ShardRange{num_bytes + 1, 0}, ShardRange{1, UINT64_MAX},
        ShardRange{UINT64_MAX, 1}, ShardRange{UINT64_MAX - 1, UINT64_MAX},
        ShardRange{0, UINT64_MAX}}) {
    ExpectCorrupt(ShardWith({range}, format), format, "leaves");
  }
}

TEST(AcceptsRangesToTheEdge) {
  const ShardIndexFormat format = {2, /*has_checksum=*/false};
  const uint64_t num_bytes = kData.size() + 32;
  const ShardIndex index = {ShardRange{0, num_bytes}, ShardRange{num_bytes, 0}};
  const Result<ShardIndex> decoded =
      DecodeShardIndex(ShardWith(index, format), format);
  ASSERT_OK(decoded);
  EXPECT_EQ(*decoded, index);
}

TEST(RefusesAnIndexOfAnotherLength) {
  const ShardIndexFormat format = {3};
  const std::string bytes = EncodeShardIndex(SomeIndex(), true);
  EXPECT_OK(DecodeShardIndexBytes(bytes, 1000, format));
  EXPECT_FALSE(DecodeShardIndexBytes(bytes + "x", 1000, format));
  EXPECT_FALSE(DecodeShardIndexBytes(bytes, bytes.size() - 1, format));
}

TEST(RefusesMoreChunksThanBytesCanCount) {
  const Result<ShardIndex> index =
      DecodeShardIndex("", {.num_chunks = UINT64_MAX / 8});
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().kind, ErrorKind::kInvalidArgument);
  // A claim that no value can meet must not make us allocate.
  ExpectCorrupt("x", {.num_chunks = uint64_t{1} << 58}, "shorter");
}

}  // namespace
}  // namespace relayout::zarr
