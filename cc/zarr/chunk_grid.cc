#include "cc/zarr/chunk_grid.h"

#include <algorithm>
#include <functional>

#include "cc/base/str_cat.h"

namespace relayout::zarr {

Result<std::vector<uint64_t>> ChunkCounts(
    std::span<const uint64_t> shape, std::span<const uint64_t> chunk_shape) {
  if (shape.size() != chunk_shape.size()) {
    return InvalidArgument(StrCat("chunk shape has rank ", chunk_shape.size(),
                                  ", the array has rank ", shape.size()));
  }
  std::vector<uint64_t> counts;
  counts.reserve(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const uint64_t length = chunk_shape[axis];
    if (length == 0) {
      return InvalidArgument(StrCat("chunk length on axis ", axis, " is 0"));
    }
    counts.push_back(shape[axis] / length + (shape[axis] % length != 0));
  }
  return counts;
}

Result<uint64_t> NumChunks(std::span<const uint64_t> counts) {
  // A product with a zero factor is zero, however long the other axes are.
  if (std::ranges::find(counts, uint64_t{0}) != counts.end()) return 0;
  uint64_t num_chunks = 1;
  for (const uint64_t count : counts) {
    if (num_chunks > UINT64_MAX / count) {
      return InvalidArgument("number of chunks exceeds 64 bits");
    }
    num_chunks *= count;
  }
  return num_chunks;
}

bool IsInGrid(std::span<const uint64_t> counts,
              std::span<const uint64_t> index) {
  return std::ranges::equal(index, counts, std::ranges::less());
}

uint64_t LinearIndex(std::span<const uint64_t> counts,
                     std::span<const uint64_t> index) {
  uint64_t position = 0;
  for (size_t axis = 0; axis < counts.size(); ++axis) {
    position = position * counts[axis] + index[axis];
  }
  return position;
}

bool NextChunk(std::span<const uint64_t> counts, std::span<uint64_t> index) {
  for (size_t axis = counts.size(); axis-- > 0;) {
    if (++index[axis] < counts[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace relayout::zarr
