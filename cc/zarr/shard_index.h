#ifndef RELAYOUT_CC_ZARR_SHARD_INDEX_H_
#define RELAYOUT_CC_ZARR_SHARD_INDEX_H_

/// \file
/// The index of a zarr shard (codec `sharding_indexed`): where each inner chunk
/// lies in the stored value.
///
/// The index is 16 bytes an inner chunk, in C order of the inner grid: offset
/// and length, both little endian; all ones for a chunk that is absent.  With
/// the index codecs `[bytes(little), crc32c]` a checksum of those bytes
/// follows, 4 bytes little endian.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/result.h"

namespace relayout::zarr {

/// How the index of a shard is stored.
struct ShardIndexFormat {
  uint64_t num_chunks = 0;  ///< inner chunks of one shard
  bool has_checksum = true;
  bool is_at_end = true;  ///< else at the start of the value
};

/// The range of one inner chunk in the value of its shard.
struct ShardRange {
  uint64_t offset = 0;  ///< from the start of the value, bytes
  uint64_t length = 0;  ///< bytes

  bool operator==(const ShardRange&) const = default;
};

/// One element an inner chunk; none: absent.
using ShardIndex = std::vector<std::optional<ShardRange>>;

/// Returns the length of an encoded index, bytes.
///
/// Errors: `kInvalidArgument` when it exceeds 64 bits.
Result<uint64_t> ShardIndexLength(const ShardIndexFormat& format);

/// Decodes the index of a whole stored shard.
///
/// Errors: `kCorrupt` when the value is shorter than the index, the checksum
/// does not match, or a range leaves the value.
Result<ShardIndex> DecodeShardIndex(std::string_view value,
                                    const ShardIndexFormat& format);

/// Decodes `index_bytes`, the index alone, of a shard of `num_value_bytes`.
///
/// Errors: as `DecodeShardIndex`; `kCorrupt` also when the length is wrong.
Result<ShardIndex> DecodeShardIndexBytes(std::string_view index_bytes,
                                         uint64_t num_value_bytes,
                                         const ShardIndexFormat& format);

/// Returns the encoded index.
std::string EncodeShardIndex(std::span<const std::optional<ShardRange>> ranges,
                             bool has_checksum);

}  // namespace relayout::zarr

#endif  // RELAYOUT_CC_ZARR_SHARD_INDEX_H_
