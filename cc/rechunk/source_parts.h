#ifndef RELAYOUT_CC_RECHUNK_SOURCE_PARTS_H_
#define RELAYOUT_CC_RECHUNK_SOURCE_PARTS_H_

/// \file
/// Which source chunks a box of the common space is made of.

#include <cstdint>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/linear_range.h"

namespace relayout::rechunk {

/// What a source chunk contributes to a box.
struct SourcePart {
  uint64_t source = 0;  ///< number of the array
  Coords chunk{};       ///< by common axis
  Box wanted;           ///< positions in the common space
};

/// Calls `visit(part)` for each source chunk that shares positions with `box`,
/// in C order of layers and then chunks, until it returns false; returns
/// whether it never did.
template <typename Visit>
bool ForEachPart(const CheckedTask& task, const Box& box, const Visit& visit) {
  const auto visit_chunks = [&](uint64_t source, const Box& layer_box) {
    const Placement& placement = task.sources[source].placement;
    return ForEachPosition(
        task.rank, placement.ChunksOf(layer_box), [&](const Coords& chunk) {
          SourcePart part = {source, chunk, placement.ChunkBox(chunk)};
          Intersect(task.rank, layer_box, part.wanted);
          return visit(part);
        });
  };
  if (task.is_source_stacked) return visit_chunks(0, box);
  Box layers;  // along the layer axes as `box`, along the others of length one
  for (uint32_t axis = 0; axis < task.rank; ++axis) layers.end[axis] = 1;
  for (const uint32_t axis : task.task.layer_axes) {
    layers.begin[axis] = box.begin[axis];
    layers.end[axis] = box.end[axis];
  }
  return ForEachPosition(task.rank, layers, [&](const Coords& layer) {
    Box layer_box = box;
    for (const uint32_t axis : task.task.layer_axes) {
      layer_box.begin[axis] = layer[axis];
      layer_box.end[axis] = layer[axis] + 1;
    }
    return visit_chunks(task.SourceAt(layer), layer_box);
  });
}

/// Returns `part.wanted` relative to the begin of its chunk.
Box RelativeBox(const CheckedTask& task, const SourcePart& part);

/// Returns the index of the chunk of `part` in its own array.
std::vector<uint64_t> ArrayIndex(const CheckedTask& task,
                                 const SourcePart& part);

/// Returns the position of the chunk of `part` in C order of its array's grid.
uint64_t ChunkNumber(const CheckedTask& task, const SourcePart& part);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_SOURCE_PARTS_H_
