#include "cc/rechunk/unit_grid.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/placement.h"

namespace relayout::rechunk {
namespace {

uint64_t CeilDivide(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Returns the common axes, those that the source's memory does not have first.
std::vector<uint32_t> MemoryOrder(const Placement& source) {
  std::vector<uint32_t> order;
  for (uint32_t axis = 0; axis < source.rank; ++axis) {
    if (std::ranges::find(source.axes, axis) == source.axes.end()) {
      order.push_back(axis);
    }
  }
  order.insert(order.end(), source.memory_axes.begin(),
               source.memory_axes.end());
  return order;
}

}  // namespace

UnitGrid::Axis UnitGrid::MakeAxis(uint64_t length, uint64_t target_chunk,
                                  uint64_t source_chunk) {
  Axis axis = {.length = length,
               .target_chunk = target_chunk,
               .source_chunk = std::max(source_chunk, target_chunk)};
  axis.num_chunks = CeilDivide(length, target_chunk);
  // The group of the last target chunk is the last.
  axis.num_groups =
      axis.num_chunks == 0
          ? 0
          : (axis.num_chunks - 1) * target_chunk / axis.source_chunk + 1;
  return axis;
}

uint64_t UnitGrid::GroupBegin(const Axis& axis, uint64_t group) {
  if (group == axis.num_groups) return axis.num_chunks;
  return CeilDivide(group * axis.source_chunk, axis.target_chunk);
}

uint64_t UnitGrid::NumSegments(const Axis& axis, uint64_t group) {
  return CeilDivide(GroupBegin(axis, group + 1) - GroupBegin(axis, group),
                    axis.segment);
}

uint64_t UnitGrid::CountSegments(const Axis& axis) {
  uint64_t count = 0;
  for (uint64_t group = 0; group < axis.num_groups; ++group) {
    count += NumSegments(axis, group);
  }
  return count;
}

void UnitGrid::Grow(uint64_t max_num_chunks) {
  for (size_t i = order_.size(); i > 0; --i) {
    Axis& axis = axes_[order_[i - 1]];
    const uint64_t group = std::min(
        axis.num_chunks, CeilDivide(axis.source_chunk, axis.target_chunk));
    const uint64_t room =
        std::max<uint64_t>(max_num_chunks / max_unit_chunks_, 1);
    // Segments of about one length: the last is no small rest.
    axis.segment = CeilDivide(group, CeilDivide(group, std::min(group, room)));
    max_unit_chunks_ *= axis.segment;
    if (axis.segment < group) return;
  }
}

UnitGrid::UnitGrid(const CheckedTask& task, uint64_t max_num_chunks) {
  if (task.num_elements == 0) return;
  const Placement& source = task.sources.front().placement;
  for (uint32_t axis = 0; axis < task.rank; ++axis) {
    axes_.push_back(MakeAxis(task.shape[axis],
                             task.target.placement.chunk[axis],
                             source.chunk[axis]));
  }
  order_ = MemoryOrder(source);
  Grow(max_num_chunks);
  num_units_ = 1;
  for (const Axis& axis : axes_) num_units_ *= CountSegments(axis);
}

UnitGrid::Cursor::Cursor(const UnitGrid& grid)
    : grid_(&grid), at_end_(grid.num_units_ == 0) {}

Unit UnitGrid::Cursor::Get() const {
  Unit unit;
  unit.num_chunks = 1;
  for (size_t i = 0; i < grid_->axes_.size(); ++i) {
    const Axis& axis = grid_->axes_[i];
    const uint64_t group_end = GroupBegin(axis, group_[i] + 1);
    const uint64_t begin =
        GroupBegin(axis, group_[i]) + segment_[i] * axis.segment;
    const uint64_t end = std::min(begin + axis.segment, group_end);
    unit.chunks.begin[i] = begin;
    unit.chunks.end[i] = end;
    unit.box.begin[i] = begin * axis.target_chunk;
    unit.box.end[i] = std::min(end * axis.target_chunk, axis.length);
    unit.num_chunks *= end - begin;
  }
  return unit;
}

void UnitGrid::Cursor::Advance() {
  // The segments of a group are inside of it: first all of those.
  for (size_t i = grid_->order_.size(); i > 0; --i) {
    const uint32_t axis = grid_->order_[i - 1];
    if (++segment_[axis] < NumSegments(grid_->axes_[axis], group_[axis])) {
      return;
    }
    segment_[axis] = 0;
  }
  for (size_t i = grid_->order_.size(); i > 0; --i) {
    const uint32_t axis = grid_->order_[i - 1];
    if (++group_[axis] < grid_->axes_[axis].num_groups) return;
    group_[axis] = 0;
  }
  at_end_ = true;
}

}  // namespace relayout::rechunk
