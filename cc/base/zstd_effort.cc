#include "cc/base/zstd_effort.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"

namespace relayout {
namespace {

constexpr uint64_t kMinBatchBytes = 2 << 20;
constexpr size_t kSampleBytes = 16 << 10;
/// One sample for so many bytes of a value, within limits.
constexpr size_t kBytesPerSample = 1 << 20;
constexpr size_t kMinSamples = 2;
constexpr size_t kMaxSamples = 16;
/// How much longer than asked samples may become.
constexpr double kTolerance = 0.001;
/// Values of one kind are left with shares of their bytes this close.
constexpr double kQuickMargin = 0.005;
constexpr double kAskedMargin = 0.05;

double Share(size_t length, size_t num_bytes) {
  return static_cast<double>(length) /
         static_cast<double>(std::max<size_t>(num_bytes, 1));
}

}  // namespace

ZstdEffort::ZstdEffort(ZstdEncoder& encoder, int32_t level, uint64_t num_bytes)
    : encoder_(encoder),
      level_(level),
      way_(num_bytes >= kMinBatchBytes && ZstdEncoder::HasQuickWay(level)
               ? Way::kUnknown
               : Way::kAsked) {}

Result<size_t> ZstdEffort::Encode(std::string_view bytes,
                                  std::span<char> output) {
  const bool is_sampled = way_ == Way::kUnknown;
  if (is_sampled) {
    RELAYOUT_ASSIGN_OR_RETURN(way_, FindWay(bytes, output));
  }
  RELAYOUT_ASSIGN_OR_RETURN(size_t length, EncodeBy(way_, bytes, output));
  if (is_sampled) {
    share_ = Share(length, bytes.size());
    return length;
  }
  if (!IsOfOtherKind(bytes.size(), length)) return length;
  const Way used = way_;
  way_ = Way::kUnknown;
  // What the search spared might have found is found now.
  return used == Way::kQuick ? Encode(bytes, output) : length;
}

Result<size_t> ZstdEffort::EncodeBy(Way way, std::string_view bytes,
                                    std::span<char> output) {
  return way == Way::kQuick ? encoder_.EncodeQuickly(bytes, level_, output)
                            : encoder_.Encode(bytes, level_, output);
}

Result<ZstdEffort::Way> ZstdEffort::FindWay(std::string_view bytes,
                                            std::span<char> scratch) {
  const size_t num_samples =
      std::clamp(bytes.size() / kBytesPerSample, kMinSamples, kMaxSamples);
  const size_t num_part_bytes = bytes.size() / num_samples;
  double asked = 0;
  double quick = 0;
  for (size_t i = 0; i < num_samples; ++i) {
    const std::string_view part =
        bytes.substr(i * num_part_bytes, num_part_bytes);
    const std::string_view sample = part.substr(
        (part.size() - std::min(part.size(), kSampleBytes)) / 2, kSampleBytes);
    RELAYOUT_ASSIGN_OR_RETURN(const size_t asked_length,
                              EncodeBy(Way::kAsked, sample, scratch));
    RELAYOUT_ASSIGN_OR_RETURN(const size_t quick_length,
                              EncodeBy(Way::kQuick, sample, scratch));
    asked += static_cast<double>(asked_length);
    quick += static_cast<double>(quick_length);
  }
  return quick <= asked * (1 + kTolerance) ? Way::kQuick : Way::kAsked;
}

bool ZstdEffort::IsOfOtherKind(size_t num_bytes, size_t length) const {
  const double share = Share(length, num_bytes);
  if (way_ == Way::kQuick) return std::abs(share - share_) > kQuickMargin;
  return share > share_ + kAskedMargin;
}

}  // namespace relayout
