#include "cc/rechunk/linear_range.h"

#include <cstdint>
#include <vector>

#include "cc/rechunk/coords.h"
#include "cc/rechunk/placement.h"
#include "cc/rechunk/raw_runs.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

/// A chunk of 3 x 4 x 5 whose axes lie in memory in the order 2, 0, 1.
Placement Example() {
  const uint64_t lengths[] = {3, 4, 5};
  const uint32_t axes[] = {0, 1, 2};
  const uint32_t order[] = {2, 0, 1};
  return *Place(lengths, lengths, axes, order);
}

/// Returns the offsets in memory of the positions of `box`, in C order.
std::vector<uint64_t> Offsets(const Placement& placement, const Box& box) {
  std::vector<uint64_t> offsets;
  ForEachPosition(placement.rank, box, [&](const Coords& position) {
    offsets.push_back(placement.MemoryOffset(position));
    return true;
  });
  return offsets;
}

TEST(BoxesOfARangeAreTheRange) {
  const Placement placement = Example();
  for (uint64_t begin = 0; begin < 60; ++begin) {
    for (uint64_t end = begin + 1; end <= 60; ++end) {
      uint64_t next = begin;
      int num_boxes = 0;
      ForEachBox(placement, {begin, end}, [&](const Box& box) {
        const auto range = EnclosingRange(placement, box);
        EXPECT_EQ(range.begin, next);
        EXPECT_EQ(Offsets(placement, box).size(), range.end - range.begin);
        next = range.end;
        ++num_boxes;
      });
      EXPECT_EQ(next, end);
      EXPECT_TRUE(num_boxes <= 5);
    }
  }
}

TEST(ScalarIsOneBox) {
  const Placement placement = *Place({}, {}, {}, {});
  int num_boxes = 0;
  ForEachBox(placement, {0, 1}, [&](const Box&) { ++num_boxes; });
  EXPECT_EQ(num_boxes, 1);
}

TEST(RunsHoldTheBoxAndSkipLongGaps) {
  const Placement placement = Example();
  const Box whole = {.begin = {}, .end = {3, 4, 5}};
  ForEachPosition(3, whole, [&](const Coords& begin) {
    const Box last = {.begin = begin, .end = whole.end};
    ForEachPosition(3, last, [&](const Coords& inclusive_end) {
      Box box = {.begin = begin, .end = inclusive_end};
      for (int axis = 0; axis < 3; ++axis) ++box.end[axis];
      std::vector<bool> is_read(60);
      uint64_t end = 0;
      ForEachRun(placement, box, /*num_gap_elements=*/2, [&](LinearRange run) {
        EXPECT_TRUE(run.begin >= end);
        end = run.end;
        for (uint64_t i = run.begin; i < run.end; ++i) is_read[i] = true;
        return true;
      });
      for (const uint64_t offset : Offsets(placement, box)) {
        EXPECT_TRUE(is_read[offset]);
      }
      return true;
    });
    return true;
  });
}

TEST(RunOfADenseBoxIsOne) {
  const Placement placement = Example();
  int num_runs = 0;
  const Box slab = {.begin = {0, 0, 1}, .end = {3, 4, 3}};
  ForEachRun(placement, slab, 0, [&](LinearRange run) {
    EXPECT_EQ(run.begin, 12);
    EXPECT_EQ(run.end, 36);
    ++num_runs;
    return true;
  });
  EXPECT_EQ(num_runs, 1);
}

TEST(RunsEndWhenTold) {
  int num_runs = 0;
  const Box column = {.begin = {0, 0, 0}, .end = {1, 1, 5}};
  EXPECT_FALSE(ForEachRun(Example(), column, 0,
                          [&](LinearRange) { return ++num_runs < 2; }));
  EXPECT_EQ(num_runs, 2);
}

}  // namespace
}  // namespace relayout::rechunk
