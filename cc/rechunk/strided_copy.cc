#include "cc/rechunk/strided_copy.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cc/rechunk/coords.h"
#include "cc/rechunk/element_copy.h"

namespace relayout::rechunk {
namespace {

using Axis = StridedBox::Axis;

/// Sorts the axes by falling stride in the target; they are few.
void SortAxes(StridedBox& box) {
  for (uint32_t i = 1; i < box.rank; ++i) {
    for (uint32_t j = i; j > 0; --j) {
      if (box.axes[j - 1].target_stride >= box.axes[j].target_stride) break;
      std::swap(box.axes[j - 1], box.axes[j]);
    }
  }
}

bool Follows(const Axis& outer, const Axis& inner) {
  const auto length = static_cast<ptrdiff_t>(inner.length);
  return outer.source_stride == inner.source_stride * length &&
         outer.target_stride == inner.target_stride * length;
}

/// Makes one axis of two that are one after the other in both memories.
void MergeAxes(StridedBox& box) {
  uint32_t last = 0;
  for (uint32_t i = 1; i < box.rank; ++i) {
    Axis& outer = box.axes[last];
    const Axis& inner = box.axes[i];
    if (Follows(outer, inner)) {
      outer = {outer.length * inner.length, inner.source_stride,
               inner.target_stride};
    } else {
      box.axes[++last] = inner;
    }
  }
  if (box.rank > 0) box.rank = last + 1;
}

/// Returns the loops over the last two axes, and takes them off `box`.
ElementLoop TakeLoop(StridedBox& box, const char* source, char* target) {
  constexpr Axis kOnce = {1, 0, 0};
  const Axis inner = box.rank > 0 ? box.axes[--box.rank] : kOnce;
  const Axis outer = box.rank > 0 ? box.axes[--box.rank] : kOnce;
  return {.source = source,
          .target = target,
          .num_outer = outer.length,
          .num_inner = inner.length,
          .source_outer = outer.source_stride,
          .target_outer = outer.target_stride,
          .source_inner = inner.source_stride,
          .target_inner = inner.target_stride};
}

/// Moves `loop` to the next position of `box`; returns false after the last.
bool Advance(const StridedBox& box, Coords& position, ElementLoop& loop) {
  for (uint32_t i = box.rank; i > 0; --i) {
    const Axis& axis = box.axes[i - 1];
    loop.source += axis.source_stride;
    loop.target += axis.target_stride;
    if (++position[i - 1] < axis.length) return true;
    loop.source -= axis.source_stride * static_cast<ptrdiff_t>(axis.length);
    loop.target -= axis.target_stride * static_cast<ptrdiff_t>(axis.length);
    position[i - 1] = 0;
  }
  return false;
}

}  // namespace

void CopyBox(StridedBox box, const char* source, char* target,
             CopyElements copy) {
  SortAxes(box);
  MergeAxes(box);
  ElementLoop loop = TakeLoop(box, source, target);
  Coords position{};
  do {
    copy(loop);
  } while (Advance(box, position, loop));
}

}  // namespace relayout::rechunk
