#ifndef RELAYOUT_CC_ZARR_CHUNK_KEY_H_
#define RELAYOUT_CC_ZARR_CHUNK_KEY_H_

/// \file
/// Chunk keys: the part of a store key below the array, in each encoding.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cc/base/result.h"

namespace relayout::zarr {

/// How a chunk index is spelled.
struct ChunkKeyFormat {
  enum class Style : uint8_t {
    kV2,       ///< "0.1"; a scalar is "0"
    kDefault,  ///< "c/0/1"; a scalar is "c"
  };
  Style style = Style::kV2;
  char separator = '.';  ///< '.' or '/'

  bool operator==(const ChunkKeyFormat&) const = default;
};

/// Parses `key` into `index`, whose size is the rank of the array.
///
/// Errors: `kCorrupt` when `key` is not the canonical spelling of an index of
/// that rank (leading zeros, a sign, too many parts and overflow included).
Status ParseChunkKey(std::string_view key, ChunkKeyFormat format,
                     std::span<uint64_t> index);

/// Appends the spelling of `index` to `out`.
void AppendChunkKey(std::span<const uint64_t> index, ChunkKeyFormat format,
                    std::string& out);

}  // namespace relayout::zarr

#endif  // RELAYOUT_CC_ZARR_CHUNK_KEY_H_
