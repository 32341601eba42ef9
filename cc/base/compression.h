#ifndef RELAYOUT_CC_BASE_COMPRESSION_H_
#define RELAYOUT_CC_BASE_COMPRESSION_H_

/// \file
/// Zstandard, with a bound on what a hostile frame can make us allocate.

#include <cstdint>
#include <string>
#include <string_view>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"

namespace relayout {

/// Levels that `ZstdCompress` accepts; 0 is the library's default.
inline constexpr int32_t kMinZstdLevel = -131072;
inline constexpr int32_t kMaxZstdLevel = 22;

/// Returns `bytes` as one frame.
///
/// Errors: `kInvalidArgument` for a level out of range.
Result<std::string> ZstdCompress(std::string_view bytes, int32_t level);

/// Returns the content of `frame`, which must be one whole frame.
///
/// Errors: `kCorrupt` when it is not, or holds more than `max_num_bytes`.
Result<ByteView> ZstdDecompress(std::string_view frame, uint64_t max_num_bytes);

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_COMPRESSION_H_
