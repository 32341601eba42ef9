#ifndef RELAYOUT_CC_RECHUNK_PLACEMENT_H_
#define RELAYOUT_CC_RECHUNK_PLACEMENT_H_

/// \file
/// The chunks of an array as boxes of the common space.

#include <cstdint>
#include <span>
#include <vector>

#include "cc/base/result.h"
#include "cc/rechunk/coords.h"

namespace relayout::rechunk {

/// An array in the common space.  Along the axes that the array does not have,
/// its chunks are one long.
struct Placement {
  uint32_t rank = 0;  ///< of the common space
  /// Lengths of a chunk along the common axes, 1 where the array has none.
  Coords chunk{};
  /// Number of chunks along the common axes, layers included.
  Coords counts{};
  /// Distance of neighbours in the memory of a chunk, in elements; 0 where the
  /// array has no such axis.
  Coords stride{};
  /// The common axis of each axis of the array.
  std::vector<uint32_t> axes;
  /// The same axes in the order of a chunk's memory, slowest first.
  std::vector<uint32_t> memory_axes;
  uint64_t num_chunk_elements = 1;

  /// Returns the box of the chunk at `index`; may reach beyond the array.
  Box ChunkBox(const Coords& index) const;

  /// Returns the position in the memory of its chunk of the element at
  /// `position`, relative to the chunk's begin.
  uint64_t MemoryOffset(const Coords& position) const;

  /// Returns the range of chunks that share a position with `box`.
  Box ChunksOf(const Box& box) const;
};

/// Places an array with chunks of `chunk_shape` that has the common axes `axes`
/// of a space of `shape`; `memory_order` are axes of the array.
///
/// Errors: `kInvalidArgument` when a chunk length is 0, or a chunk has
/// `kMaxLength` elements or more.
Result<Placement> Place(std::span<const uint64_t> shape,
                        std::span<const uint64_t> chunk_shape,
                        std::span<const uint32_t> axes,
                        std::span<const uint32_t> memory_order);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_PLACEMENT_H_
