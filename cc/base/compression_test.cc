#include "cc/base/compression.h"

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "cc/base/result.h"
#include "cc/testing/test.h"

namespace relayout {
namespace {

constexpr uint64_t kLimit = 1 << 20;

std::string RandomBytes(size_t size) {
  std::mt19937 random(static_cast<uint32_t>(size));
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random() % 7);
  return bytes;
}

/// A frame that doesn't tell its size, as streaming writers make them.
std::string CompressWithoutSize(std::string_view bytes) {
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  const size_t size = ZSTD_compress2(context, frame.data(), frame.size(),
                                     bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  frame.resize(size);
  return frame;
}

void ExpectCorrupt(std::string_view frame, uint64_t limit,
                   std::string_view message) {
  const auto result = ZstdDecompress(frame, limit);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(result.error().message, message);
}

TEST(RoundTrips) {
  for (const size_t size : {0, 1, 100, 4096, 100'000}) {
    for (const int32_t level : {kMinZstdLevel, -5, 0, 3, kMaxZstdLevel}) {
      const std::string bytes = RandomBytes(size);
      const auto frame = ZstdCompress(bytes, level);
      ASSERT_OK(frame);
      const auto back = ZstdDecompress(*frame, kLimit);
      ASSERT_OK(back);
      EXPECT_TRUE(back->bytes() == bytes);
    }
  }
}

TEST(RoundTripsFramesWithoutSize) {
  for (const size_t size : {0, 1, 5000, 300'000}) {
    const std::string bytes = RandomBytes(size);
    const auto back = ZstdDecompress(CompressWithoutSize(bytes), kLimit);
    ASSERT_OK(back);
    EXPECT_TRUE(back->bytes() == bytes);
  }
}

TEST(RefusesLevelsOutOfRange) {
  for (const int32_t level : {kMinZstdLevel - 1, kMaxZstdLevel + 1}) {
    const auto frame = ZstdCompress("a", level);
    ASSERT_FALSE(frame.has_value());
    EXPECT_EQ(frame.error().kind, ErrorKind::kInvalidArgument);
  }
}

TEST(CorruptBeyondLimit) {
  const std::string bytes(5000, 'x');
  for (const auto& frame :
       {*ZstdCompress(bytes, 3), CompressWithoutSize(bytes)}) {
    EXPECT_OK(ZstdDecompress(frame, 5000));
    ExpectCorrupt(frame, 4999, "limit of 4999 bytes");
    ExpectCorrupt(frame, 0, "limit of 0 bytes");
  }
}

TEST(CorruptBomb) {
  const std::string bomb = *ZstdCompress(std::string(64 << 20, '\0'), 19);
  EXPECT_TRUE(bomb.size() < 10'000);
  ExpectCorrupt(bomb, kLimit, "limit");
}

TEST(CorruptWhenCutShort) {
  const std::string frame = *ZstdCompress(RandomBytes(2000), 3);
  for (size_t size = 0; size < frame.size(); ++size) {
    const auto part = std::string_view(frame).substr(0, size);
    ASSERT_FALSE(ZstdDecompress(part, kLimit).has_value());
  }
}

TEST(CorruptWhenSomethingFollows) {
  const std::string frame = *ZstdCompress("content", 3);
  ExpectCorrupt(frame + "x", kLimit, "ends after");
  ExpectCorrupt(frame + frame, kLimit, "ends after");
}

TEST(CorruptWhenNoFrame) {
  ExpectCorrupt("this is no zstd frame", kLimit, "damaged");
}

}  // namespace
}  // namespace relayout
