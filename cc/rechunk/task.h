#ifndef RELAYOUT_CC_RECHUNK_TASK_H_
#define RELAYOUT_CC_RECHUNK_TASK_H_

/// \file
/// What is to be rewritten, in terms of arrays.
///
/// A task has a *common space*: the axes of the stacked form, of which some are
/// layer axes.  A side of a task, sources or targets, is either *stacked*, one
/// array with an axis for each of the space, or *unstacked*: one array for each
/// layer, in C order over the lengths of the layer axes, without those axes.
/// So unstacking, stacking, another scan axis, another chunk shape and a cast
/// are all one operation.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cc/ocdbt/listing.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rechunk {

/// How the bytes of a chunk are stored, in the order of encoding: a checksum of
/// the elements, zstd, a checksum of the stored bytes.
struct CodecChain {
  bool has_inner_checksum = false;
  bool has_zstd = false;
  bool has_outer_checksum = false;
};

struct SourceArray {
  /// The first that has a key wins.
  std::vector<std::shared_ptr<const ocdbt::Listing>> listings;
  std::string array;
  zarr::ChunkKeyFormat keys;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> chunk_shape;
  std::string dtype;
  CodecChain codecs;
  bool big_endian = false;
  /// The axes of the array in the order of a chunk's memory, slowest first.
  std::vector<uint32_t> memory_order;
  /// One element, little endian; what the chunks that are not stored hold.
  std::string fill_value;
};

/// Its chunks are in C order and little endian.
struct TargetArray {
  std::string array;
  zarr::ChunkKeyFormat keys;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> chunk_shape;
  std::string dtype;
  std::string metadata_key;  ///< `.zarray` or `zarr.json`
  std::string metadata;
  /// None: chunks are not compressed.
  std::optional<int32_t> zstd_level;
  std::string fill_value;
  /// Whether chunks that the source does not store are stored all the same.
  bool store_fill = false;
};

struct RewriteTask {
  std::vector<uint64_t> shape;  ///< of the common space
  std::vector<uint32_t> layer_axes;
  std::vector<SourceArray> sources;
  /// All of one form; names and metadata differ.
  std::vector<TargetArray> targets;
  /// The common axis of each axis of an array of the side.
  std::vector<uint32_t> source_axes;
  std::vector<uint32_t> target_axes;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_TASK_H_
