#include "cc/rechunk/unit_grid.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/fake_source.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

CheckedTask Task(std::vector<uint64_t> shape, std::vector<uint64_t> source,
                 std::vector<uint64_t> target,
                 std::vector<uint32_t> memory_order = {}) {
  SourceArray array =
      ByteSource(MakeListing({}), "a", shape, std::move(source));
  if (!memory_order.empty()) array.memory_order = std::move(memory_order);
  return *CheckTask(
      PlainTask(std::move(array), ByteTarget("b", shape, std::move(target))));
}

std::vector<Unit> Units(const UnitGrid& grid) {
  std::vector<Unit> units;
  for (UnitGrid::Cursor cursor(grid); !cursor.at_end(); cursor.Advance()) {
    units.push_back(cursor.Get());
  }
  return units;
}

TEST(UnitsCoverEachChunkOnce) {
  for (const uint64_t source : {1, 2, 3, 7, 20}) {
    for (const uint64_t target : {1, 2, 3, 5, 30}) {
      for (const uint64_t max_chunks : {1, 2, 4, 100}) {
        const CheckedTask task = Task({13, 9}, {source, 4}, {target, 3});
        const UnitGrid grid(task, max_chunks);
        std::set<std::pair<uint64_t, uint64_t>> chunks;
        uint64_t num_chunks = 0;
        const auto units = Units(grid);
        for (const Unit& unit : units) {
          EXPECT_TRUE(unit.num_chunks <= grid.max_unit_chunks());
          num_chunks += unit.num_chunks;
          ForEachPosition(2, unit.chunks, [&](const Coords& chunk) {
            chunks.emplace(chunk[0], chunk[1]);
            return true;
          });
        }
        EXPECT_EQ(units.size(), grid.num_units());
        EXPECT_TRUE(grid.max_unit_chunks() <= max_chunks);
        EXPECT_EQ(chunks.size(), num_chunks);
        EXPECT_EQ(num_chunks, (13 + target - 1) / target * 3);
      }
    }
  }
}

TEST(UnitsAreSlabsOfTheSourceChunkInItsOrder) {
  // Axis 1 is the slowest in the memory of the source.
  const CheckedTask task = Task({8, 8}, {8, 8}, {2, 1}, {1, 0});
  const auto units = Units(UnitGrid(task, 8));
  ASSERT_EQ(units.size(), 4);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(units[i].box.begin[0], 0);
    EXPECT_EQ(units[i].box.end[0], 8);
    EXPECT_EQ(units[i].box.begin[1], 2 * i);
    EXPECT_EQ(units[i].box.end[1], 2 * i + 2);
  }
}

TEST(UnitsAreOfAboutOneSize) {
  const CheckedTask task = Task({10}, {10}, {1});
  const auto units = Units(UnitGrid(task, 6));
  ASSERT_EQ(units.size(), 2);
  EXPECT_EQ(units[0].num_chunks, 5);
}

TEST(BoxesEndWithTheSpace) {
  const CheckedTask task = Task({5}, {5}, {3});
  const auto units = Units(UnitGrid(task, 1));
  ASSERT_EQ(units.size(), 2);
  EXPECT_EQ(units[1].box.begin[0], 3);
  EXPECT_EQ(units[1].box.end[0], 5);
}

TEST(ScalarIsOneUnitAndNothingIsNone) {
  EXPECT_EQ(Units(UnitGrid(Task({}, {}, {}), 4)).size(), 1);
  EXPECT_EQ(Units(UnitGrid(Task({0, 3}, {1, 1}, {1, 1}), 4)).size(), 0);
}

}  // namespace
}  // namespace relayout::rechunk
