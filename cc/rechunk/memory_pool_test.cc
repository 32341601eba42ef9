#include "cc/rechunk/memory_pool.h"

#include <optional>
#include <thread>
#include <utility>

#include "cc/base/byte_buffer.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

TEST(UsesBuffersAgain) {
  MemoryPool pool(1000);
  auto buffer = pool.Acquire(900);
  ASSERT_TRUE(buffer.has_value());
  const char* const data = buffer->data();
  pool.Release(*std::move(buffer));
  buffer = pool.Acquire(800);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_TRUE(buffer->data() == data);
  EXPECT_EQ(pool.peak_bytes(), 900);
}

TEST(IdleBuffersMakeRoom) {
  MemoryPool pool(10000);
  auto large = pool.Acquire(9000);
  ASSERT_TRUE(large.has_value());
  pool.Release(*std::move(large));
  auto small = pool.Acquire(2000);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->size(), 2000);
  EXPECT_EQ(pool.peak_bytes(), 9000);
}

TEST(WaitsForRoom) {
  MemoryPool pool(100);
  auto first = pool.Acquire(60);
  ASSERT_TRUE(first.has_value());
  std::optional<ByteBuffer> second;
  std::jthread waiter([&] { second = pool.Acquire(60); });
  pool.Release(*std::move(first));
  waiter.join();
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(pool.peak_bytes() <= 100);
}

TEST(StopEndsWaiting) {
  MemoryPool pool(100);
  const auto first = pool.Acquire(60);
  std::optional<ByteBuffer> second;
  std::jthread waiter([&] { second = pool.Acquire(60); });
  pool.Stop();
  waiter.join();
  EXPECT_FALSE(second.has_value());
  EXPECT_FALSE(pool.Acquire(1).has_value());
}

}  // namespace
}  // namespace relayout::rechunk
