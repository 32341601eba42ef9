#ifndef RELAYOUT_CC_RECHUNK_UNIT_GRID_H_
#define RELAYOUT_CC_RECHUNK_UNIT_GRID_H_

/// \file
/// How a task is cut into units: boxes of whole target chunks that are made in
/// memory at once.
///
/// Along each axis the target chunks form *groups*: those that begin in one
/// source chunk.  A unit stays within a group and grows from one target chunk
/// along the axes of the source's memory, the fastest first, as long as it fits
/// its budget.  So it is, where it can be, one contiguous part of the decoded
/// source chunk, and the units of a group, in order, are the chunk from start
/// to end.

#include <cstdint>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"

namespace relayout::rechunk {

/// A box of target chunks.
struct Unit {
  Box chunks;  ///< indices in the target's grid
  Box box;     ///< positions in the common space, within its shape
  uint64_t num_chunks = 0;
};

class UnitGrid {
 public:
  /// Grows units up to `max_num_chunks` target chunks.
  UnitGrid(const CheckedTask& task, uint64_t max_num_chunks);

  uint64_t num_units() const { return num_units_; }
  /// Number of target chunks of the largest unit.
  uint64_t max_unit_chunks() const { return max_unit_chunks_; }

  /// Goes through the units of a grid in order.
  class Cursor {
   public:
    explicit Cursor(const UnitGrid& grid);

    bool at_end() const { return at_end_; }
    Unit Get() const;
    void Advance();

   private:
    const UnitGrid* grid_;
    Coords group_{};    ///< by common axis
    Coords segment_{};  ///< within the group
    bool at_end_ = false;
  };

 private:
  struct Axis {
    uint64_t length = 0;        ///< of the common space
    uint64_t target_chunk = 1;  ///< length of a target chunk
    uint64_t source_chunk = 1;
    uint64_t num_chunks = 0;  ///< of the target
    uint64_t num_groups = 0;
    uint64_t segment = 1;  ///< target chunks of a unit, at most
  };

  /// Returns the first target chunk of a group.
  static uint64_t GroupBegin(const Axis& axis, uint64_t group);
  static uint64_t NumSegments(const Axis& axis, uint64_t group);
  static uint64_t CountSegments(const Axis& axis);
  static Axis MakeAxis(uint64_t length, uint64_t target_chunk,
                       uint64_t source_chunk);
  void Grow(uint64_t max_num_chunks);

  std::vector<Axis> axes_;
  /// Common axes in the order of the source's memory, slowest first.
  std::vector<uint32_t> order_;
  uint64_t num_units_ = 0;
  uint64_t max_unit_chunks_ = 1;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_UNIT_GRID_H_
