#ifndef RELAYOUT_CC_RECHUNK_COORDS_H_
#define RELAYOUT_CC_RECHUNK_COORDS_H_

/// \file
/// Positions and boxes in a space of up to `kMaxRank` axes.

#include <array>
#include <cstdint>

namespace relayout::rechunk {

inline constexpr uint32_t kMaxRank = 12;

/// Lengths and coordinates stay below this, so that sums do not overflow.
inline constexpr uint64_t kMaxLength = uint64_t{1} << 62;

/// One number for each axis; those beyond the rank mean nothing.
using Coords = std::array<uint64_t, kMaxRank>;

/// Positions from `begin` to before `end`, on each axis.
struct Box {
  Coords begin{};
  Coords end{};
};

/// Cuts `box` down to what it shares with `other`; returns whether there is
/// anything.
inline bool Intersect(uint32_t rank, const Box& other, Box& box) {
  for (uint32_t axis = 0; axis < rank; ++axis) {
    if (box.begin[axis] < other.begin[axis])
      box.begin[axis] = other.begin[axis];
    if (box.end[axis] > other.end[axis]) box.end[axis] = other.end[axis];
    if (box.begin[axis] >= box.end[axis]) return false;
  }
  return true;
}

/// Calls `visit(position)` for each position of `box`, which is not empty, in C
/// order, until it returns false; returns whether it never did.
template <typename Visit>
bool ForEachPosition(uint32_t rank, const Box& box, const Visit& visit) {
  Coords position = box.begin;
  while (true) {
    if (!visit(position)) return false;
    uint32_t axis = rank;
    while (axis > 0 && ++position[axis - 1] == box.end[axis - 1]) {
      position[axis - 1] = box.begin[axis - 1];
      --axis;
    }
    if (axis == 0) return true;
  }
}

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_COORDS_H_
