#include "cc/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <expected>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cc/base/result.h"

namespace relayout {
namespace {

/// What the threads of one loop share.
///
/// Items are handed out in rising order, so when one fails, all before it have
/// begun and will report; the lowest failing index is therefore always seen.
class Loop {
 public:
  Loop(size_t num_items, const std::function<Status(size_t)>& body)
      : num_items_(num_items), body_(body) {}

  /// Runs items until there are no more, or one has failed.
  void Run() {
    while (!failed_.load(std::memory_order_relaxed)) {
      const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= num_items_) return;
      if (Status status = Call(index); !status.has_value()) {
        Report(index, std::move(status).error());
      }
    }
  }

  Status TakeStatus() {
    if (!error_.has_value()) return {};
    return std::unexpected(*std::move(error_));
  }

 private:
  /// No thread may end by an exception: that would end the process.
  Status Call(size_t index) {
    try {
      return body_(index);
    } catch (const std::bad_alloc&) {
      return SystemError("out of memory");
    }
  }

  void Report(size_t index, Error error) {
    const std::lock_guard lock(mutex_);
    failed_.store(true, std::memory_order_relaxed);
    if (error_.has_value() && error_index_ < index) return;
    error_ = std::move(error);
    error_index_ = index;
  }

  const size_t num_items_;
  const std::function<Status(size_t)>& body_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
  size_t error_index_ = 0;
};

size_t NumThreads(size_t num_items, int num_threads) {
  const size_t wanted = num_threads > 0 ? static_cast<size_t>(num_threads)
                                        : std::thread::hardware_concurrency();
  return std::clamp<size_t>(wanted, 1, std::max<size_t>(num_items, 1));
}

/// Starts `count` threads, or as many as the system grants.
std::vector<std::jthread> StartHelpers(size_t count, Loop& loop) {
  std::vector<std::jthread> helpers;
  helpers.reserve(count);
  try {
    while (helpers.size() < count) {
      helpers.emplace_back([&loop] { loop.Run(); });
    }
  } catch (const std::system_error&) {
    return helpers;  // those that there are do all the work
  }
  return helpers;
}

}  // namespace

Status ParallelFor(size_t num_items, int num_threads,
                   const std::function<Status(size_t)>& body) {
  Loop loop(num_items, body);
  {
    const auto helpers =
        StartHelpers(NumThreads(num_items, num_threads) - 1, loop);
    loop.Run();
  }
  return loop.TakeStatus();
}

}  // namespace relayout
