#ifndef RELAYOUT_CC_RECHUNK_STRIDED_COPY_H_
#define RELAYOUT_CC_RECHUNK_STRIDED_COPY_H_

/// \file
/// Copies a box of elements between two memory layouts.

#include <array>
#include <cstddef>
#include <cstdint>

#include "cc/rechunk/coords.h"
#include "cc/rechunk/element_copy.h"

namespace relayout::rechunk {

/// A box of elements; strides are in bytes.
struct StridedBox {
  struct Axis {
    uint64_t length;
    ptrdiff_t source_stride;
    ptrdiff_t target_stride;
  };

  void Add(uint64_t length, ptrdiff_t source_stride, ptrdiff_t target_stride) {
    if (length != 1) axes[rank++] = {length, source_stride, target_stride};
  }

  uint32_t rank = 0;
  std::array<Axis, kMaxRank> axes;
};

/// Calls `copy` for all elements of `box`, in the order of the target's memory.
/// `source` and `target` are those of its first element.
void CopyBox(StridedBox box, const char* source, char* target,
             CopyElements copy);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_STRIDED_COPY_H_
