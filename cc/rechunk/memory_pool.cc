#include "cc/rechunk/memory_pool.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "cc/base/byte_buffer.h"

namespace relayout::rechunk {

std::optional<ByteBuffer> MemoryPool::Acquire(uint64_t num_bytes) {
  std::unique_lock lock(mutex_);
  released_.wait(lock, [&] {
    return is_stopped_ || num_used_bytes_ + num_bytes <= limit_;
  });
  if (is_stopped_) return std::nullopt;
  auto buffer = TakeIdle(num_bytes);
  if (!buffer.has_value()) {
    MakeRoom(num_bytes);
    buffer.emplace(num_bytes);
  }
  num_used_bytes_ += buffer->size();
  peak_bytes_ = std::max(peak_bytes_, num_used_bytes_ + num_idle_bytes_);
  return buffer;
}

void MemoryPool::Release(ByteBuffer buffer) {
  {
    const std::lock_guard lock(mutex_);
    num_used_bytes_ -= buffer.size();
    num_idle_bytes_ += buffer.size();
    idle_.emplace(buffer.size(), std::move(buffer));
  }
  released_.notify_one();
}

void MemoryPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  released_.notify_all();
}

uint64_t MemoryPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

std::optional<ByteBuffer> MemoryPool::TakeIdle(uint64_t num_bytes) {
  const auto found = idle_.lower_bound(num_bytes);
  if (found == idle_.end()) return std::nullopt;
  const uint64_t size = found->first;
  const bool is_wasteful = size - num_bytes > num_bytes / 4 + 4096;
  if (is_wasteful || num_used_bytes_ + size > limit_) return std::nullopt;
  ByteBuffer buffer = std::move(found->second);
  idle_.erase(found);
  num_idle_bytes_ -= size;
  return buffer;
}

void MemoryPool::MakeRoom(uint64_t num_bytes) {
  while (num_used_bytes_ + num_idle_bytes_ + num_bytes > limit_) {
    const auto largest = std::prev(idle_.end());
    num_idle_bytes_ -= largest->first;
    idle_.erase(largest);
  }
}

}  // namespace relayout::rechunk
