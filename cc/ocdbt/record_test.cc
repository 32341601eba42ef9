#include "cc/ocdbt/record.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cc/base/byte_view.h"
#include "cc/base/compression.h"
#include "cc/base/crc32c.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/ocdbt/varint.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

constexpr auto kKind = RecordKind::kBtreeNode;
constexpr std::string_view kBody = "body of the record, body of the record";

void ExpectError(const ByteView& record, ErrorKind kind,
                 std::string_view message) {
  const auto body = DecodeRecord(kKind, record);
  ASSERT_FALSE(body.has_value());
  EXPECT_EQ(body.error().kind, kind);
  EXPECT_CONTAINS(body.error().message, message);
}

/// A sealed record with any version, compression and content.
ByteView Handmade(uint64_t version, uint64_t compression,
                  std::string_view content) {
  std::string record;
  AppendBigEndian32(record, static_cast<uint32_t>(kKind));
  record.append(8, '\0');
  AppendVarint(record, version);
  AppendVarint(record, compression);
  record += content;
  record.append(4, '\0');
  return Reseal(record);
}

TEST(RoundTripsWithAndWithoutCompression) {
  for (const auto level : {std::optional<int32_t>(), std::optional(0),
                           std::optional(-3), std::optional(19)}) {
    for (const std::string_view body : {std::string_view(), kBody}) {
      const auto record = EncodeRecord(kKind, body, level);
      ASSERT_OK(record);
      const auto back = DecodeRecord(kKind, ByteView::Own(*record));
      ASSERT_OK(back);
      EXPECT_EQ(back->bytes(), body);
    }
  }
}

TEST(HasTheBytesOfTheFormat) {
  const std::string record =
      *EncodeRecord(RecordKind::kManifest, "ab", std::nullopt);
  const std::string covered = FromHex(
      "0cdb3a2a1400000000000000"
      "0000"
      "6162");
  std::string checksum;
  AppendLittleEndian32(checksum, Crc32c(covered));
  EXPECT_EQ(record, covered + checksum);
}

TEST(InvalidLevel) {
  const auto record = EncodeRecord(kKind, kBody, kMaxZstdLevel + 1);
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().kind, ErrorKind::kInvalidArgument);
}

TEST(CorruptWhenCutAnywhere) {
  for (const auto level : {std::optional<int32_t>(), std::optional(0)}) {
    const std::string record = *EncodeRecord(kKind, kBody, level);
    for (size_t size = 0; size < record.size(); ++size) {
      const auto cut = ByteView::Own(record.substr(0, size));
      ASSERT_FALSE(DecodeRecord(kKind, cut).has_value());
    }
  }
}

TEST(CorruptWhenAnyBitFlips) {
  const std::string record = *EncodeRecord(kKind, kBody, 0);
  for (size_t bit = 0; bit < 8 * record.size(); ++bit) {
    std::string damaged = record;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto body = DecodeRecord(kKind, ByteView::Own(damaged));
    ASSERT_FALSE(body.has_value());
    ASSERT_EQ(body.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(CorruptChecksum) {
  std::string record = *EncodeRecord(kKind, kBody, 0);
  record.back() = static_cast<char>(record.back() + 1);
  ExpectError(ByteView::Own(record), ErrorKind::kCorrupt, "checksum is ");
}

TEST(CorruptMagic) {
  ExpectError(MakeRecord(RecordKind::kManifest, kBody), ErrorKind::kCorrupt,
              "not that of a B+tree node");
}

TEST(CorruptLength) {
  for (const int change : {-1, 1, 100}) {
    std::string record(MakeRecord(kKind, kBody).bytes());
    record[4] = static_cast<char>(record[4] + change);
    record.resize(record.size() - 4);
    AppendLittleEndian32(record, Crc32c(record));
    ExpectError(ByteView::Own(record), ErrorKind::kCorrupt,
                StrCat("but there are ", record.size()));
  }
}

TEST(CorruptWhenSomethingFollows) {
  const std::string record(MakeRecord(kKind, kBody).bytes());
  ExpectError(ByteView::Own(record + "x"), ErrorKind::kCorrupt, "checksum");
}

TEST(CorruptContent) {
  ExpectError(Handmade(0, 1, "no zstd frame"), ErrorKind::kCorrupt, "zstd");
  ExpectError(Handmade(0, 1, *ZstdCompress(kBody, 0) + "x"),
              ErrorKind::kCorrupt, "zstd");
}

TEST(UnsupportedVersionOrCompression) {
  EXPECT_OK(DecodeRecord(kKind, Handmade(0, 0, kBody)));
  ExpectError(Handmade(1, 0, kBody), ErrorKind::kUnsupported,
              "format version 1");
  ExpectError(Handmade(0, 2, kBody), ErrorKind::kUnsupported,
              "compression format 2");
}

TEST(CorruptHeaderIntegers) {
  ExpectError(Handmade(uint64_t{1} << 32, 0, kBody), ErrorKind::kCorrupt,
              "format version 4294967296 exceeds");
  ExpectError(Handmade(0, uint64_t{1} << 40, kBody), ErrorKind::kCorrupt,
              "compression format");
}

}  // namespace
}  // namespace relayout::ocdbt
