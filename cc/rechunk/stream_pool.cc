#include "cc/rechunk/stream_pool.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

namespace relayout::rechunk {

bool StreamPool::WaitForTurn(uint64_t chain, uint64_t turn) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_stopped_ || turns_[chain] == turn; });
  return !is_stopped_;
}

void StreamPool::EndTurn(uint64_t chain, bool is_last) {
  {
    const std::lock_guard lock(mutex_);
    if (is_last) {
      turns_.erase(chain);
    } else {
      ++turns_[chain];
    }
  }
  changed_.notify_all();
}

PooledStream StreamPool::Take(uint64_t chain) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(parked_, chain, &Parked::chain);
  if (found == parked_.end()) return {};
  PooledStream stream = std::move(found->stream);
  parked_.erase(found);
  return stream;
}

void StreamPool::Park(uint64_t chain, PooledStream stream) {
  {
    const std::lock_guard lock(mutex_);
    parked_.push_back({chain, std::move(stream)});
  }
  changed_.notify_all();
}

bool StreamPool::Reserve(uint64_t num_bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    Evict(num_bytes);
    return is_stopped_ || num_bytes_ + num_bytes <= limit_;
  });
  if (is_stopped_) return false;
  num_bytes_ += num_bytes;
  peak_bytes_ = std::max(peak_bytes_, num_bytes_);
  return true;
}

void StreamPool::Release(uint64_t num_bytes) {
  {
    const std::lock_guard lock(mutex_);
    num_bytes_ -= num_bytes;
  }
  changed_.notify_all();
}

void StreamPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
}

uint64_t StreamPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void StreamPool::Evict(uint64_t num_bytes) {
  while (!parked_.empty() && num_bytes_ + num_bytes > limit_) {
    num_bytes_ -= parked_.front().stream.num_bytes;
    parked_.pop_front();
  }
}

}  // namespace relayout::rechunk
