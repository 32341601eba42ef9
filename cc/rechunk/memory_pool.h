#ifndef RELAYOUT_CC_RECHUNK_MEMORY_POOL_H_
#define RELAYOUT_CC_RECHUNK_MEMORY_POOL_H_

/// \file
/// Buffers within a limit of bytes, used again and again: the system's fresh
/// pages cost about as much as copying into them.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "cc/base/byte_buffer.h"

namespace relayout::rechunk {

class MemoryPool {
 public:
  explicit MemoryPool(uint64_t limit) : limit_(limit) {}

  /// Waits until `num_bytes`, at most the limit, are free; returns a buffer of
  /// at least so many bytes, or none once `Stop` was called.  One thread at a
  /// time may wait.
  std::optional<ByteBuffer> Acquire(uint64_t num_bytes);

  /// Takes back a buffer of `Acquire`.
  void Release(ByteBuffer buffer);

  /// Ends all waiting, for good.
  void Stop();

  /// Most bytes of buffers that there were at once.
  uint64_t peak_bytes() const;

 private:
  /// Returns an idle buffer that is not much longer than `num_bytes`.
  std::optional<ByteBuffer> TakeIdle(uint64_t num_bytes);
  /// Frees idle buffers until there is room for `num_bytes` more.
  void MakeRoom(uint64_t num_bytes);

  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool is_stopped_ = false;
  uint64_t num_used_bytes_ = 0;
  uint64_t num_idle_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
  /// By size.
  std::multimap<uint64_t, ByteBuffer> idle_;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_MEMORY_POOL_H_
