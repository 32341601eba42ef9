#ifndef RELAYOUT_CC_BASE_ZSTD_EFFORT_H_
#define RELAYOUT_CC_BASE_ZSTD_EFFORT_H_

/// \file
/// Spares a search for repetitions where there are none.
///
/// Weights look random to zstd: what it saves, it saves by the frequencies of
/// bytes.  Looking for short repetitions costs time then and gains nothing, or
/// even loses.  Samples tell.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"

namespace relayout {

/// Encodes a batch of values of one kind.
class ZstdEffort {
 public:
  /// For a batch of `num_bytes` in all; small ones are not worth a sample.
  ZstdEffort(ZstdEncoder& encoder, int32_t level, uint64_t num_bytes);

  /// Writes `bytes` as one frame to `output`, which takes the longest one;
  /// returns its length.  The frame depends on the batch up to here and the
  /// level only.
  ///
  /// Errors: `kSystem` when there is no memory.
  Result<size_t> Encode(std::string_view bytes, std::span<char> output);

 private:
  enum class Way : uint8_t { kUnknown, kAsked, kQuick };

  Result<size_t> EncodeBy(Way way, std::string_view bytes,
                          std::span<char> output);
  /// Returns the way that is better for samples of `bytes`; writes to
  /// `scratch`.
  Result<Way> FindWay(std::string_view bytes, std::span<char> scratch);
  /// Returns whether what was sampled may say little of a value that became
  /// this long.
  bool IsOfOtherKind(size_t num_bytes, size_t length) const;

  ZstdEncoder& encoder_;
  const int32_t level_;
  Way way_;
  /// Of its bytes that the last value sampled was left with.
  double share_ = std::numeric_limits<double>::infinity();
};

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_ZSTD_EFFORT_H_
