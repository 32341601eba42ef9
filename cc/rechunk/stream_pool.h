#ifndef RELAYOUT_CC_RECHUNK_STREAM_POOL_H_
#define RELAYOUT_CC_RECHUNK_STREAM_POOL_H_

/// \file
/// Streams of large chunks that one unit after another reads on.
///
/// The units that read a stream take turns, in the order of the units.  Between
/// them the stream is parked.  When memory runs short, the one parked longest
/// is given up; whoever wants to read on must then begin anew.

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cc/rechunk/chunk_stream.h"

namespace relayout::rechunk {

/// A stream, open or not, and the bytes reserved for it.
struct PooledStream {
  std::unique_ptr<ChunkStream> stream;
  uint64_t num_bytes = 0;
};

class StreamPool {
 public:
  explicit StreamPool(uint64_t limit) : limit_(limit) {}

  uint64_t limit() const { return limit_; }

  /// Waits until it is the turn of use number `turn` of `chain`; false: `Stop`
  /// was called.
  bool WaitForTurn(uint64_t chain, uint64_t turn);
  /// Gives the turn to the next; after the last use, forgets the chain.
  void EndTurn(uint64_t chain, bool is_last);

  /// Returns the parked stream of `chain`, if there is one.
  PooledStream Take(uint64_t chain);
  void Park(uint64_t chain, PooledStream stream);

  /// Waits until `num_bytes`, at most the limit, are free, and reserves them;
  /// false: `Stop` was called.
  bool Reserve(uint64_t num_bytes);
  void Release(uint64_t num_bytes);

  /// Ends all waiting, for good.
  void Stop();

  uint64_t peak_bytes() const;

 private:
  struct Parked {
    uint64_t chain;
    PooledStream stream;
  };

  /// Gives up parked streams until there is room for `num_bytes` more, or there
  /// are none left.
  void Evict(uint64_t num_bytes);

  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  uint64_t num_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
  std::unordered_map<uint64_t, uint64_t> turns_;  ///< by chain
  std::list<Parked> parked_;                      ///< longest parked first
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_STREAM_POOL_H_
