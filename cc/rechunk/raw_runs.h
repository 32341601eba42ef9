#ifndef RELAYOUT_CC_RECHUNK_RAW_RUNS_H_
#define RELAYOUT_CC_RECHUNK_RAW_RUNS_H_

/// \file
/// Which ranges of a chunk that is stored as it is are worth reading.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cc/rechunk/coords.h"
#include "cc/rechunk/linear_range.h"
#include "cc/rechunk/placement.h"

namespace relayout::rechunk {

/// Calls `visit(range)` with ranges of a chunk's memory, in order, that hold
/// all of `box`, which is relative to the chunk's begin, until it returns
/// false; returns whether it never did.  Gaps are read along where they are
/// short, up to `num_gap_elements` or half of all.
template <typename Visit>
bool ForEachRun(const Placement& placement, const Box& box,
                uint64_t num_gap_elements, const Visit& visit) {
  const auto& axes = placement.memory_axes;
  // Within the axes from `level` on, the box is dense.
  size_t level = axes.size();
  uint64_t num_needed = 1;
  uint64_t num_spanned = 1;
  for (; level > 0; --level) {
    const uint32_t axis = axes[level - 1];
    const uint64_t length = box.end[axis] - box.begin[axis];
    const uint64_t needed = num_needed * length;
    const uint64_t spanned =
        (length - 1) * placement.stride[axis] + num_spanned;
    if (spanned - needed > std::max(needed, num_gap_elements)) break;
    num_needed = needed;
    num_spanned = spanned;
  }
  // One position for each run: the axes from `level` on count once.
  Box starts;
  for (size_t i = 0; i < axes.size(); ++i) {
    starts.begin[i] = box.begin[axes[i]];
    starts.end[i] = i < level ? box.end[axes[i]] : starts.begin[i] + 1;
  }
  return ForEachPosition(
      static_cast<uint32_t>(axes.size()), starts, [&](const Coords& start) {
        uint64_t begin = 0;
        for (size_t i = 0; i < axes.size(); ++i) {
          begin += start[i] * placement.stride[axes[i]];
        }
        return visit(LinearRange{begin, begin + num_spanned});
      });
}

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_RAW_RUNS_H_
