#include "cc/rechunk/source_parts.h"

#include <cstdint>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/placement.h"

namespace relayout::rechunk {

Box RelativeBox(const CheckedTask& task, const SourcePart& part) {
  const Placement& placement = task.sources[part.source].placement;
  const Coords origin = placement.ChunkBox(part.chunk).begin;
  Box box = part.wanted;
  for (uint32_t axis = 0; axis < task.rank; ++axis) {
    box.begin[axis] -= origin[axis];
    box.end[axis] -= origin[axis];
  }
  return box;
}

std::vector<uint64_t> ArrayIndex(const CheckedTask& task,
                                 const SourcePart& part) {
  std::vector<uint64_t> index;
  for (const uint32_t axis : task.sources[part.source].placement.axes) {
    index.push_back(part.chunk[axis]);
  }
  return index;
}

uint64_t ChunkNumber(const CheckedTask& task, const SourcePart& part) {
  const Placement& placement = task.sources[part.source].placement;
  uint64_t number = 0;
  for (const uint32_t axis : placement.axes) {
    number = number * placement.counts[axis] + part.chunk[axis];
  }
  return number;
}

}  // namespace relayout::rechunk
