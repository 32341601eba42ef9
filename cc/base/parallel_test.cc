#include "cc/base/parallel.h"

#include <atomic>
#include <cstddef>
#include <new>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/testing/test.h"

namespace relayout {
namespace {

TEST(CallsEachItemOnce) {
  for (const int num_threads : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> calls(500);
    EXPECT_OK(ParallelFor(calls.size(), num_threads, [&](size_t i) -> Status {
      ++calls[i];
      return {};
    }));
    for (const auto& count : calls) ASSERT_EQ(count.load(), 1);
  }
}

TEST(DoesNothingForNoItems) {
  EXPECT_OK(ParallelFor(
      0, 4, [](size_t) -> Status { return SystemError("called"); }));
}

TEST(LowestFailingIndexWins) {
  for (int round = 0; round < 200; ++round) {
    const Status status = ParallelFor(64, 4, [](size_t i) -> Status {
      if (i < 20) return {};
      return Corrupt(StrCat("item ", i));
    });
    ASSERT_FALSE(status.has_value());
    ASSERT_EQ(status.error().message, "item 20");
  }
}

TEST(StopsAfterAnError) {
  std::atomic<size_t> num_calls = 0;
  const Status status = ParallelFor(1'000'000, 2, [&](size_t) -> Status {
    ++num_calls;
    return Corrupt("no");
  });
  EXPECT_FALSE(status.has_value());
  EXPECT_TRUE(num_calls.load() <= 2);
}

TEST(ReportsExhaustedMemory) {
  const Status status =
      ParallelFor(3, 2, [](size_t) -> Status { throw std::bad_alloc(); });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kSystem);
}

}  // namespace
}  // namespace relayout
