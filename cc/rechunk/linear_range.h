#ifndef RELAYOUT_CC_RECHUNK_LINEAR_RANGE_H_
#define RELAYOUT_CC_RECHUNK_LINEAR_RANGE_H_

/// \file
/// A range of a chunk's memory as boxes, and the reverse.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cc/rechunk/coords.h"
#include "cc/rechunk/placement.h"

namespace relayout::rechunk {

/// Elements from `begin` to before `end`, in the order of a chunk's memory.
struct LinearRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Returns the smallest range of the memory of a chunk that holds `box`, which
/// is relative to the chunk's begin and not empty.
inline LinearRange EnclosingRange(const Placement& placement, const Box& box) {
  LinearRange range = {placement.MemoryOffset(box.begin), 1};
  for (const uint32_t axis : placement.axes) {
    range.end += (box.end[axis] - 1) * placement.stride[axis];
  }
  return range;
}

/// Calls `visit(box)` with the boxes, relative to the begin of the chunk, that
/// make up `range` of its memory, in order; at most two for each axis.
template <typename Visit>
void ForEachBox(const Placement& placement, LinearRange range,
                const Visit& visit) {
  const auto& axes = placement.memory_axes;
  while (range.begin < range.end) {
    Box box;
    for (uint32_t axis = 0; axis < placement.rank; ++axis) box.end[axis] = 1;
    // The slowest axis along which there is a whole step.
    size_t level = 0;
    uint64_t rest = range.begin;
    for (; level < axes.size(); ++level) {
      const uint64_t stride = placement.stride[axes[level]];
      box.begin[axes[level]] = rest / stride;
      box.end[axes[level]] = box.begin[axes[level]] + 1;
      rest %= stride;
      if (rest == 0 && stride <= range.end - range.begin) break;
    }
    uint64_t num_elements = 1;
    if (level < axes.size()) {
      const uint32_t axis = axes[level];
      const uint64_t stride = placement.stride[axis];
      const uint64_t count = std::min((range.end - range.begin) / stride,
                                      placement.chunk[axis] - box.begin[axis]);
      box.end[axis] = box.begin[axis] + count;
      num_elements = count * stride;
    }
    for (size_t i = level + 1; i < axes.size(); ++i) {
      box.begin[axes[i]] = 0;
      box.end[axes[i]] = placement.chunk[axes[i]];
    }
    visit(box);
    range.begin += num_elements;
  }
}

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_LINEAR_RANGE_H_
