#ifndef RELAYOUT_CC_ZARR_CHUNK_GRID_H_
#define RELAYOUT_CC_ZARR_CHUNK_GRID_H_

/// \file
/// Index arithmetic of a regular chunk grid; no I/O.

#include <cstdint>
#include <span>
#include <vector>

#include "cc/base/result.h"

namespace relayout::zarr {

/// Returns the number of chunks along each axis: the shape divided by the chunk
/// shape, rounded up.  An axis of length 0 has no chunk.
///
/// Errors: `kInvalidArgument` when the ranks differ or a chunk length is 0.
Result<std::vector<uint64_t>> ChunkCounts(
    std::span<const uint64_t> shape, std::span<const uint64_t> chunk_shape);

/// Returns the number of chunks in a grid: the product of `counts`, 1 for a
/// scalar.
///
/// Errors: `kInvalidArgument` when it exceeds 64 bits.
Result<uint64_t> NumChunks(std::span<const uint64_t> counts);

/// Returns whether `index` lies in the grid; the ranks must agree.
bool IsInGrid(std::span<const uint64_t> counts,
              std::span<const uint64_t> index);

/// Returns the position of `index` in C order.  `index` must lie in the grid
/// and `NumChunks(counts)` must not fail.
uint64_t LinearIndex(std::span<const uint64_t> counts,
                     std::span<const uint64_t> index);

/// Moves `index` to the next chunk in C order.  Returns false, with `index` at
/// the origin again, after the last one.
bool NextChunk(std::span<const uint64_t> counts, std::span<uint64_t> index);

}  // namespace relayout::zarr

#endif  // RELAYOUT_CC_ZARR_CHUNK_GRID_H_
