#include "cc/base/zstd_codec.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cc/base/compression.h"
#include "cc/base/result.h"
#include "cc/testing/test.h"

namespace relayout {
namespace {

std::string Content(size_t size) {
  std::string content(size, '\0');
  uint32_t state = 1;
  for (char& c : content) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 29);
  }
  return content;
}

/// Decodes `frame` with inputs of `input_size` and outputs of `output_size`.
Result<std::string> DecodeInSteps(std::string_view frame, size_t input_size,
                                  size_t output_size) {
  ZstdDecoder decoder;
  std::string content;
  std::string output(output_size, '\0');
  while (true) {
    const auto step =
        decoder.Decode(frame.substr(0, std::min(input_size, frame.size())),
                       {output.data(), output.size()});
    if (!step.has_value()) return std::unexpected(step.error());
    content.append(output, 0, step->num_written);
    frame.remove_prefix(step->num_read);
    if (step->at_end) return content;
    if (step->num_read + step->num_written == 0) return Corrupt("cut short");
  }
}

TEST(EncodesAsOneFrame) {
  ZstdEncoder encoder;
  for (const size_t size : {0, 1, 1000, 300000}) {
    const std::string content = Content(size);
    std::string frame(ZstdEncoder::MaxFrameBytes(size), '\0');
    const auto length = encoder.Encode(content, 3, frame);
    ASSERT_OK(length);
    const auto decoded =
        ZstdDecompress(std::string_view(frame).substr(0, *length), size);
    ASSERT_OK(decoded);
    EXPECT_TRUE(decoded->bytes() == content);
  }
}

TEST(FrameDoesNotDependOnWhatCameBefore) {
  const std::string content = Content(200000);
  ZstdEncoder used;
  std::string first(ZstdEncoder::MaxFrameBytes(content.size()), '\0');
  std::string second = first;
  ASSERT_OK(used.Encode(Content(500), 9, first));
  ASSERT_OK(used.Encode(content, 3, first));
  ASSERT_OK(ZstdEncoder().Encode(content, 3, second));
  EXPECT_TRUE(first == second);
}

TEST(DecodesInSteps) {
  const std::string content = Content(400000);
  const auto frame = ZstdCompress(content, 3);
  ASSERT_OK(frame);
  for (const size_t size : {7, 1000, 1 << 20}) {
    const auto decoded = DecodeInSteps(*frame, size, 2 * size + 1);
    ASSERT_OK(decoded);
    EXPECT_TRUE(*decoded == content);
  }
}

TEST(CorruptFrameInSteps) {
  auto frame = *ZstdCompress(Content(400000), 3);
  const auto cut = DecodeInSteps(frame.substr(0, frame.size() / 2), 999, 999);
  ASSERT_FALSE(cut.has_value());
  frame[0] ^= 1;
  const auto result = DecodeInSteps(frame, 999, 999);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(result.error().message, "damaged");
}

TEST(WholeFrameMustFillTheOutput) {
  const auto frame = *ZstdCompress(Content(1000), 3);
  ZstdDecoder decoder;
  std::string output(1000, '\0');
  ASSERT_OK(decoder.DecodeWhole(frame, output));
  EXPECT_TRUE(output == Content(1000));
  output.resize(1001);
  auto status = decoder.DecodeWhole(frame, output);
  ASSERT_FALSE(status.has_value());
  EXPECT_CONTAINS(status.error().message, "holds 1000 bytes instead of 1001");
  output.resize(999);
  EXPECT_FALSE(decoder.DecodeWhole(frame, output).has_value());
  output.resize(1000);
  status = decoder.DecodeWhole(frame + "x", output);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
}

TEST(MemoryOfAFrameIsThatOfItsWindow) {
  const std::string content = Content(8 << 20);
  const auto frame = *ZstdCompress(content, 3);
  const auto needed = ZstdDecoder::NumBytesNeeded(frame, content.size());
  ASSERT_OK(needed);
  EXPECT_TRUE(*needed >= (uint64_t{2} << 20));
  EXPECT_TRUE(*needed < (uint64_t{4} << 20));
}

TEST(CorruptHeader) {
  const auto frame = *ZstdCompress(Content(1000), 3);
  const auto longer = ZstdDecoder::NumBytesNeeded(frame, 1001);
  ASSERT_FALSE(longer.has_value());
  EXPECT_CONTAINS(longer.error().message, "holds 1000 bytes instead of 1001");
  for (const std::string_view header : {"", "\x28\xb5", "not zstd at all"}) {
    const auto result = ZstdDecoder::NumBytesNeeded(header, 1000);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
  }
  const std::string_view skippable("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
  const auto empty = ZstdDecoder::NumBytesNeeded(skippable, 1000);
  ASSERT_FALSE(empty.has_value());
  EXPECT_CONTAINS(empty.error().message, "holds no content");
}

TEST(HugeWindowIsUnsupported) {
  // Magic, no content size, window descriptor 2^30.
  const std::string_view header("\x28\xb5\x2f\xfd\x00\xa0\x00\x00", 8);
  const auto result = ZstdDecoder::NumBytesNeeded(header, uint64_t{1} << 40);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
  EXPECT_CONTAINS(result.error().message, "window of 1073741824 bytes");
}

TEST(MemoryOfAnEncoderGrowsWithTheLevel) {
  EXPECT_TRUE(ZstdEncoder::NumBytesNeeded(3, 1 << 20) < (uint64_t{4} << 20));
  EXPECT_TRUE(ZstdEncoder::NumBytesNeeded(22, 1 << 30) > (uint64_t{64} << 20));
}

}  // namespace
}  // namespace relayout
