#include "cc/ocdbt/varint.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

std::vector<uint64_t> Samples() {
  std::vector<uint64_t> samples = {0, UINT64_MAX};
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    samples.insert(samples.end(), {power - 1, power, power + 1});
  }
  return samples;
}

TEST(VarintsRoundTrip) {
  for (const uint64_t value : Samples()) {
    std::string bytes;
    AppendVarint(bytes, value);
    EXPECT_EQ(bytes.size(), VarintSize(value));
    ByteReader reader(bytes);
    uint64_t back = 0;
    ASSERT_TRUE(reader.ReadVarint(back));
    EXPECT_EQ(back, value);
    EXPECT_EQ(reader.num_remaining(), 0);
  }
}

TEST(VarintSizes) {
  EXPECT_EQ(VarintSize(0), 1);
  EXPECT_EQ(VarintSize(127), 1);
  EXPECT_EQ(VarintSize(128), 2);
  EXPECT_EQ(VarintSize(UINT64_MAX), kMaxVarintBytes);
}

TEST(CorruptVarintsTakeNothing) {
  const std::string long_zero = std::string(10, '\x80') + '\0';
  const std::string overflow = std::string(9, '\xff') + '\x02';
  for (const auto& bytes : {std::string(), std::string("\x80"),
                            std::string(9, '\xff'), long_zero, overflow}) {
    ByteReader reader(bytes);
    uint64_t value = 42;
    EXPECT_FALSE(reader.ReadVarint(value));
    EXPECT_EQ(value, 42);
    EXPECT_EQ(reader.num_remaining(), bytes.size());
  }
}

TEST(FixedSizeIntegersRoundTrip) {
  std::string bytes;
  AppendLittleEndian32(bytes, 0x01020304);
  AppendBigEndian32(bytes, 0x01020304);
  AppendLittleEndian64(bytes, 0x0102030405060708);
  EXPECT_EQ(bytes,
            "\x04\x03\x02\x01\x01\x02\x03\x04\x08\x07\x06\x05\x04\x03\x02\x01");
  ByteReader reader(bytes);
  uint32_t little, big;
  uint64_t wide;
  ASSERT_TRUE(reader.ReadLittleEndian32(little) &&
              reader.ReadBigEndian32(big) && reader.ReadLittleEndian64(wide));
  EXPECT_EQ(little, 0x01020304);
  EXPECT_EQ(big, 0x01020304);
  EXPECT_EQ(wide, 0x0102030405060708);
  uint8_t byte;
  EXPECT_FALSE(reader.ReadByte(byte) || reader.ReadLittleEndian32(little) ||
               reader.ReadBigEndian32(big) || reader.ReadLittleEndian64(wide));
}

TEST(ReadsBytesWithinBounds) {
  ByteReader reader("abcd");
  std::string_view bytes;
  uint8_t byte;
  ASSERT_TRUE(reader.ReadByte(byte));
  EXPECT_EQ(byte, 'a');
  EXPECT_FALSE(reader.ReadBytes(4, bytes));
  EXPECT_FALSE(reader.ReadBytes(SIZE_MAX, bytes));
  ASSERT_TRUE(reader.ReadBytes(2, bytes));
  EXPECT_EQ(bytes, "bc");
  EXPECT_EQ(reader.rest(), "d");
}

}  // namespace
}  // namespace relayout::ocdbt
