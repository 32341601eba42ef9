#include "cc/rechunk/placement.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/rechunk/coords.h"

namespace relayout::rechunk {

Box Placement::ChunkBox(const Coords& index) const {
  Box box;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    box.begin[axis] = index[axis] * chunk[axis];
    box.end[axis] = box.begin[axis] + chunk[axis];
  }
  return box;
}

uint64_t Placement::MemoryOffset(const Coords& position) const {
  uint64_t offset = 0;
  for (const uint32_t axis : axes) offset += position[axis] * stride[axis];
  return offset;
}

Box Placement::ChunksOf(const Box& box) const {
  Box chunks;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    chunks.begin[axis] = box.begin[axis] / chunk[axis];
    chunks.end[axis] = (box.end[axis] - 1) / chunk[axis] + 1;
  }
  return chunks;
}

Result<Placement> Place(std::span<const uint64_t> shape,
                        std::span<const uint64_t> chunk_shape,
                        std::span<const uint32_t> axes,
                        std::span<const uint32_t> memory_order) {
  Placement result;
  result.rank = static_cast<uint32_t>(shape.size());
  result.axes.assign(axes.begin(), axes.end());
  result.chunk.fill(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (chunk_shape[i] == 0) return InvalidArgument("a chunk length is 0");
    result.chunk[axes[i]] = chunk_shape[i];
  }
  for (uint32_t axis = 0; axis < result.rank; ++axis) {
    const uint64_t rest = shape[axis] % result.chunk[axis];
    result.counts[axis] =
        shape[axis] / result.chunk[axis] + (rest != 0 ? 1 : 0);
  }
  for (size_t i = memory_order.size(); i > 0; --i) {
    const uint32_t axis = axes[memory_order[i - 1]];
    result.stride[axis] = result.num_chunk_elements;
    if (result.chunk[axis] >= kMaxLength / result.num_chunk_elements) {
      return InvalidArgument(
          StrCat("a chunk has more than ", kMaxLength, " elements"));
    }
    result.num_chunk_elements *= result.chunk[axis];
  }
  for (const uint32_t axis : memory_order) {
    result.memory_axes.push_back(axes[axis]);
  }
  return result;
}

}  // namespace relayout::rechunk
