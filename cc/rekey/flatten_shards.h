#ifndef RELAYOUT_CC_REKEY_FLATTEN_SHARDS_H_
#define RELAYOUT_CC_REKEY_FLATTEN_SHARDS_H_

/// \file
/// The inner chunks of zarr shards, seen as the chunks of ordinary arrays.
///
/// A shard is a value whose index (see zarr/shard_index.h) tells where in it
/// each inner chunk lies.  So an inner chunk is a shorter range of the same
/// data file, and a value like any other.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rekey {

/// Most inner chunks of one shard.
inline constexpr uint64_t kMaxInnerChunks = uint64_t{1} << 22;

/// An array of codec `sharding_indexed`; grids are C order, one count an axis.
struct ShardedArray {
  std::string name;
  /// Of the shards, and of the inner chunks in the result.
  zarr::ChunkKeyFormat keys;
  /// Number of shards along each axis.
  std::vector<uint64_t> shard_grid;
  /// Number of inner chunks of one shard.
  std::vector<uint64_t> inner_grid_per_shard;
  /// Number of inner chunks of the array; the shards at its edges may have
  /// more, which are left out.
  std::vector<uint64_t> inner_grid;
  bool has_checksum = true;  ///< of the index
  bool index_is_at_end = true;
  /// `zarr.json` of the ordinary array.
  std::string metadata;
};

/// Returns a listing of `arrays` alone, each with its inner chunks for chunks.
/// It shares the data files of `listing`.
///
/// Reads the index of each shard.  A shard that is not stored has no chunks.
///
/// Errors: `kInvalidArgument` when an array is not in the listing or named
/// twice, or its grids don't fit each other; `kCorrupt` naming array and shard
/// when an index is damaged or a key spells no shard; `kUnsupported` beyond a
/// limit; `kSystem`.
///
/// `num_threads` 0 means one per processor.  The result does not depend on it.
Result<ocdbt::Listing> FlattenShards(
    std::shared_ptr<const ocdbt::Listing> listing,
    std::vector<ShardedArray> arrays, int num_threads = 0);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_FLATTEN_SHARDS_H_
