#include "cc/base/zstd_effort.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/compression.h"
#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"
#include "cc/testing/test.h"

namespace relayout {
namespace {

constexpr size_t kValueBytes = 160 << 10;
constexpr size_t kNumValues = 16;
constexpr size_t kBatchBytes = kNumValues * kValueBytes;

std::string Weights(size_t num_bytes, uint32_t seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  std::string bytes(num_bytes, '\0');
  for (size_t i = 0; i + sizeof(float) <= num_bytes; i += sizeof(float)) {
    const float value = distribution(generator);
    std::memcpy(bytes.data() + i, &value, sizeof(value));
  }
  return bytes;
}

/// The upper halves of float32.
std::string ShortWeights(size_t num_bytes) {
  const std::string wide = Weights(2 * num_bytes);
  std::string bytes(num_bytes, '\0');
  for (size_t i = 0; i < num_bytes; ++i) {
    bytes[i] = wide[i / 2 * 4 + 2 + i % 2];
  }
  return bytes;
}

std::string Text(size_t num_bytes) {
  static constexpr std::array<std::string_view, 8> kSyllables = {
      "ta", "ne", "ri", "so", "lum", "ver", "qua", "dix"};
  std::mt19937 generator(2);
  std::string text;
  while (text.size() < num_bytes) {
    for (uint32_t n = 1 + generator() % 3; n > 0; --n) {
      text += kSyllables[generator() % kSyllables.size()];
    }
    text += ' ';
  }
  return text.substr(0, num_bytes);
}

std::string Integers(size_t num_bytes, bool is_random) {
  std::mt19937 generator(3);
  std::string bytes(num_bytes, '\0');
  for (size_t i = 0; i + sizeof(uint32_t) <= num_bytes; i += sizeof(uint32_t)) {
    const auto value = static_cast<uint32_t>(is_random ? generator() % 3000
                                                       : i / sizeof(uint32_t));
    std::memcpy(bytes.data() + i, &value, sizeof(value));
  }
  return bytes;
}

/// Rows of weights, all of them twice, the second time much later.
std::string RowsTwice(size_t num_bytes) {
  const std::string half = Weights(num_bytes / 2);
  return half + half;
}

/// Returns the lengths of the frames of `bytes`, cut into values.
Result<std::vector<size_t>> Lengths(std::string_view bytes, int32_t level,
                                    size_t num_value_bytes, bool is_asked) {
  ZstdEncoder encoder;
  ZstdEffort effort(encoder, level, bytes.size());
  std::string frame(ZstdEncoder::MaxFrameBytes(num_value_bytes), '\0');
  std::vector<size_t> lengths;
  while (!bytes.empty()) {
    const std::string_view value = bytes.substr(0, num_value_bytes);
    bytes.remove_prefix(value.size());
    RELAYOUT_ASSIGN_OR_RETURN(const size_t length,
                              is_asked ? encoder.Encode(value, level, frame)
                                       : effort.Encode(value, frame));
    RELAYOUT_ASSIGN_OR_RETURN(
        const ByteView decoded,
        ZstdDecompress(std::string_view(frame).substr(0, length),
                       value.size()));
    if (decoded.bytes() != value) return Corrupt("other content");
    lengths.push_back(length);
  }
  return lengths;
}

/// Checks that frames are longer by `tolerance` at most than those at `level`.
void CheckLength(std::string_view bytes, int32_t level, double tolerance,
                 size_t num_value_bytes = kValueBytes) {
  const auto asked = Lengths(bytes, level, num_value_bytes, true);
  const auto lengths = Lengths(bytes, level, num_value_bytes, false);
  ASSERT_OK(asked);
  ASSERT_OK(lengths);
  const auto sum = [](const std::vector<size_t>& values) {
    size_t result = 0;
    for (const size_t value : values) result += value;
    return static_cast<double>(result);
  };
  EXPECT_TRUE(sum(*lengths) <= sum(*asked) * (1 + tolerance));
  if (sum(*lengths) > sum(*asked) * (1 + tolerance)) {
    EXPECT_EQ(sum(*lengths), sum(*asked));
  }
}

TEST(WeightsAreNoLonger) {
  for (const int32_t level : {1, 3, 6, 12}) {
    CheckLength(Weights(kBatchBytes), level, 0.001);
    CheckLength(ShortWeights(kBatchBytes), level, 0.001);
  }
}

TEST(WeightsAreEncodedQuickly) {
  const std::string weights = Weights(kBatchBytes);
  ZstdEncoder encoder;
  std::string frame(ZstdEncoder::MaxFrameBytes(kValueBytes), '\0');
  const auto quick = encoder.EncodeQuickly(
      std::string_view(weights).substr(0, kValueBytes), 3, frame);
  ASSERT_OK(quick);
  const auto lengths = Lengths(weights, 3, kValueBytes, false);
  ASSERT_OK(lengths);
  EXPECT_EQ(lengths->front(), *quick);
}

TEST(SmallBatchesAreEncodedAsAsked) {
  const std::string weights = ShortWeights(kValueBytes);
  const auto asked = Lengths(weights, 3, kValueBytes, true);
  const auto lengths = Lengths(weights, 3, kValueBytes, false);
  ASSERT_OK(asked);
  ASSERT_OK(lengths);
  EXPECT_TRUE(*lengths == *asked);
}

TEST(RepetitionsAreFound) {
  for (const int32_t level : {-3, 0, 3, 9}) {
    CheckLength(Text(kBatchBytes), level, 0.005);
    CheckLength(std::string(kBatchBytes, '\0'), level, 0.05);
    CheckLength(Integers(kBatchBytes, false), level, 0.005);
    CheckLength(Integers(kBatchBytes, true), level, 0.005);
  }
}

TEST(RepetitionsFarApartAreFound) {
  for (const size_t num_bytes : {100 << 10, 500 << 10, 2 << 20, 3 << 20}) {
    std::string values;
    while (values.size() < kBatchBytes) values += RowsTwice(num_bytes);
    CheckLength(values, 3, 0.01, num_bytes);
  }
}

TEST(MixedValuesAreNoLonger) {
  const std::string mixed =
      Weights(kValueBytes / 2) + Text(kValueBytes - kValueBytes / 2);
  std::string values;
  while (values.size() < kBatchBytes) values += mixed;
  CheckLength(values, 3, 0.005);
}

TEST(ValuesOfAnotherKindAreNoticed) {
  const std::string weights = Weights(kBatchBytes / 2);
  const std::string text = Text(kBatchBytes / 2);
  CheckLength(weights + text, 3, 0.005);
  CheckLength(text + weights, 3, 0.005);
  CheckLength(weights + std::string(kValueBytes, '\0') + weights, 3, 0.005);
}

TEST(FramesDoNotDependOnTheEncoder) {
  const std::string values = Text(kBatchBytes / 2) + Weights(kBatchBytes / 2);
  ZstdEncoder used;
  std::string frame(ZstdEncoder::MaxFrameBytes(kValueBytes), '\0');
  ASSERT_OK(used.EncodeQuickly(Text(kValueBytes), 9, frame));
  std::string again = frame;
  ZstdEncoder fresh;
  ZstdEffort first(used, 3, values.size());
  ZstdEffort second(fresh, 3, values.size());
  for (size_t i = 0; i < kNumValues; ++i) {
    const auto value =
        std::string_view(values).substr(i * kValueBytes, kValueBytes);
    const auto length = first.Encode(value, frame);
    ASSERT_OK(length);
    const auto same = second.Encode(value, again);
    ASSERT_OK(same);
    EXPECT_TRUE(std::string_view(frame).substr(0, *length) ==
                std::string_view(again).substr(0, *same));
  }
}

TEST(TakesEmptyValues) {
  ZstdEncoder encoder;
  ZstdEffort effort(encoder, 3, kBatchBytes);
  std::string frame(ZstdEncoder::MaxFrameBytes(0), '\0');
  const auto length = effort.Encode({}, frame);
  ASSERT_OK(length);
  EXPECT_OK(ZstdDecompress(std::string_view(frame).substr(0, *length), 0));
}

}  // namespace
}  // namespace relayout
