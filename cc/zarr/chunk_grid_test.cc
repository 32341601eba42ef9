#include "cc/zarr/chunk_grid.h"

#include <cstdint>
#include <vector>

#include "cc/testing/test.h"

namespace relayout::zarr {
namespace {

using Sizes = std::vector<uint64_t>;

TEST(CountsChunks) {
  const Result<Sizes> counts =
      ChunkCounts(Sizes{10, 9, 0, 1}, Sizes{3, 9, 4, 100});
  ASSERT_OK(counts);
  EXPECT_EQ(*counts, Sizes({4, 1, 0, 1}));
  const Result<Sizes> scalar = ChunkCounts({}, {});
  ASSERT_OK(scalar);
  EXPECT_EQ(*scalar, Sizes());
}

TEST(CountsChunksOfTheLongestAxis) {
  const Result<Sizes> counts =
      ChunkCounts(Sizes{UINT64_MAX, UINT64_MAX}, Sizes{2, UINT64_MAX});
  ASSERT_OK(counts);
  EXPECT_EQ(*counts, Sizes({uint64_t{1} << 63, 1}));
}

TEST(RefusesBadChunkShapes) {
  const Result<Sizes> rank = ChunkCounts(Sizes{1, 2}, Sizes{1});
  ASSERT_FALSE(rank.has_value());
  EXPECT_EQ(rank.error().kind, ErrorKind::kInvalidArgument);
  const Result<Sizes> zero = ChunkCounts(Sizes{1, 2}, Sizes{1, 0});
  ASSERT_FALSE(zero.has_value());
  EXPECT_CONTAINS(zero.error().message, "axis 1");
}

TEST(MultipliesCounts) {
  EXPECT_EQ(NumChunks({}).value_or(99), 1);
  EXPECT_EQ(NumChunks(Sizes{3, 4}).value_or(99), 12);
  EXPECT_EQ(NumChunks(Sizes{UINT64_MAX, UINT64_MAX, 0}).value_or(99), 0);
  EXPECT_EQ(NumChunks(Sizes{UINT64_MAX, 1}).value_or(99), UINT64_MAX);
  EXPECT_FALSE(NumChunks(Sizes{uint64_t{1} << 32, uint64_t{1} << 32}));
}

TEST(TellsWhatIsInTheGrid) {
  EXPECT_TRUE(IsInGrid(Sizes{2, 3}, Sizes{1, 2}));
  EXPECT_FALSE(IsInGrid(Sizes{2, 3}, Sizes{2, 0}));
  EXPECT_FALSE(IsInGrid(Sizes{2, 3}, Sizes{0, 3}));
  EXPECT_FALSE(IsInGrid(Sizes{0}, Sizes{0}));
  EXPECT_TRUE(IsInGrid({}, {}));
}

TEST(VisitsEveryChunkInOrder) {
  const Sizes counts = {2, 1, 3};
  Sizes index(counts.size());
  uint64_t position = 0;
  do {
    EXPECT_TRUE(IsInGrid(counts, index));
    EXPECT_EQ(LinearIndex(counts, index), position);
    ++position;
  } while (NextChunk(counts, index));
  EXPECT_EQ(position, 6);
  EXPECT_EQ(index, Sizes({0, 0, 0}));
}

TEST(VisitsAScalarOnce) { EXPECT_FALSE(NextChunk({}, {})); }

}  // namespace
}  // namespace relayout::zarr
