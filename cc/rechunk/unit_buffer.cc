#include "cc/rechunk/unit_buffer.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cc/base/byte_buffer.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/linear_range.h"
#include "cc/rechunk/placement.h"
#include "cc/rechunk/strided_copy.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {
namespace {

/// Returns the room in front of the chunks: encoded ones are a little longer at
/// worst, and the last needs to be apart from what it is made from.
uint64_t NumFrontBytes(const CheckedTask& task, uint64_t num_chunks) {
  if (!task.task.targets.front().zstd_level.has_value()) return 0;
  const uint64_t num_frame_bytes =
      ZstdEncoder::MaxFrameBytes(task.target.num_chunk_bytes);
  return num_chunks * num_frame_bytes -
         (num_chunks - 1) * task.target.num_chunk_bytes;
}

Coords ScaleStride(const Placement& placement, uint64_t element_bytes) {
  Coords stride = placement.stride;
  for (uint32_t axis = 0; axis < placement.rank; ++axis) {
    stride[axis] *= element_bytes;
  }
  return stride;
}

Box Shift(uint32_t rank, Box box, const Coords& origin) {
  for (uint32_t axis = 0; axis < rank; ++axis) {
    box.begin[axis] += origin[axis];
    box.end[axis] += origin[axis];
  }
  return box;
}

}  // namespace

uint64_t NumUnitBytes(const CheckedTask& task, uint64_t num_chunks) {
  return NumFrontBytes(task, num_chunks) +
         num_chunks * task.target.num_chunk_bytes;
}

UnitBuffer::UnitBuffer(const CheckedTask& task, const Unit& unit,
                       ByteBuffer buffer)
    : task_(&task),
      unit_(unit),
      buffer_(std::move(buffer)),
      data_offset_(NumFrontBytes(task, unit.num_chunks)),
      is_stored_(unit.num_chunks, task.task.targets.front().store_fill) {
  FillRaggedChunks();
}

void UnitBuffer::Scatter(const SourceForm& source, const Coords& origin,
                         const Box& wanted, uint64_t first_byte,
                         std::string_view bytes) {
  const uint64_t element_bytes = source.num_element_bytes;
  const Coords stride = ScaleStride(source.placement, element_bytes);
  const LinearRange range = {first_byte / element_bytes,
                             (first_byte + bytes.size()) / element_bytes};
  ForEachBox(source.placement, range, [&](const Box& relative) {
    Box box = Shift(task_->rank, relative, origin);
    if (!Intersect(task_->rank, wanted, box)) return;
    uint64_t offset = 0;
    for (uint32_t axis = 0; axis < task_->rank; ++axis) {
      offset += (box.begin[axis] - origin[axis]) * stride[axis];
    }
    CopyToChunks(box, {.data = bytes.data() + (offset - first_byte),
                       .copy = source.copy,
                       .stride = &stride});
  });
}

void UnitBuffer::Fill(const SourceForm& source, const Box& wanted) {
  static constexpr Coords kNoStride{};
  CopyToChunks(wanted, {.data = source.fill.data(),
                        .copy = task_->target.copy,
                        .stride = &kNoStride,
                        .is_fill = source.keeps_fill});
}

std::string_view UnitBuffer::ChunkBytes(uint64_t chunk) const {
  return {const_cast<UnitBuffer*>(this)->ChunkData(chunk),
          task_->target.num_chunk_bytes};
}

void UnitBuffer::CopyToChunks(const Box& box, const Elements& source) {
  ForEachPosition(task_->rank, task_->target.placement.ChunksOf(box),
                  [&](const Coords& chunk) {
                    CopyToChunk(chunk, box, source);
                    return true;
                  });
}

void UnitBuffer::CopyToChunk(const Coords& chunk, const Box& box,
                             const Elements& source) {
  const Placement& target = task_->target.placement;
  const uint64_t number = ChunkNumber(chunk);
  const char* from = source.data;
  char* to = ChunkData(number);
  StridedBox copy;
  Box part = target.ChunkBox(chunk);
  const Coords chunk_begin = part.begin;
  Intersect(task_->rank, box, part);
  for (uint32_t axis = 0; axis < task_->rank; ++axis) {
    const uint64_t stride =
        target.stride[axis] * task_->target.num_element_bytes;
    from += (part.begin[axis] - box.begin[axis]) * (*source.stride)[axis];
    to += (part.begin[axis] - chunk_begin[axis]) * stride;
    copy.Add(part.end[axis] - part.begin[axis],
             static_cast<ptrdiff_t>((*source.stride)[axis]),
             static_cast<ptrdiff_t>(stride));
  }
  CopyBox(copy, from, to, source.copy);
  if (!source.is_fill) is_stored_[number] = true;
}

void UnitBuffer::FillRaggedChunks() {
  const Placement& target = task_->target.placement;
  const std::string& fill = task_->task.targets.front().fill_value;
  ForEachPosition(task_->rank, unit_.chunks, [&](const Coords& chunk) {
    const Box box = target.ChunkBox(chunk);
    Box inside = box;
    Intersect(task_->rank, task_->WholeBox(), inside);
    if (inside.end == box.end) return true;
    StridedBox all;
    all.Add(target.num_chunk_elements, 0,
            static_cast<ptrdiff_t>(task_->target.num_element_bytes));
    CopyBox(all, fill.data(), ChunkData(ChunkNumber(chunk)),
            task_->target.copy);
    return true;
  });
}

char* UnitBuffer::ChunkData(uint64_t chunk) {
  return buffer_.data() + data_offset_ + chunk * task_->target.num_chunk_bytes;
}

uint64_t UnitBuffer::ChunkNumber(const Coords& chunk) const {
  uint64_t number = 0;
  for (uint32_t axis = 0; axis < task_->rank; ++axis) {
    number = number * (unit_.chunks.end[axis] - unit_.chunks.begin[axis]) +
             (chunk[axis] - unit_.chunks.begin[axis]);
  }
  return number;
}

}  // namespace relayout::rechunk
