#ifndef RELAYOUT_CC_RECHUNK_WORKERS_H_
#define RELAYOUT_CC_RECHUNK_WORKERS_H_

/// \file
/// The threads of a rewrite.
///
/// Each takes the next unit, in order, waits for the memory of its buffer, and
/// does all of it.  A unit waits for earlier ones only, so the oldest always
/// proceeds.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "cc/base/byte_buffer.h"
#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/memory_pool.h"
#include "cc/rechunk/ordered_writer.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/unit_buffer.h"
#include "cc/rechunk/unit_grid.h"
#include "cc/rechunk/unit_reader.h"

namespace relayout::rechunk {

class Workers {
 public:
  Workers(const RewritePlan& plan, io::FileWriter& file);

  /// Does all units.  Meanwhile the calling thread calls `progress`, if given.
  ///
  /// Errors: of the first unit that failed; `kSystem` when `progress` returned
  /// false, or no thread could be started.
  Status Run(const std::function<bool(uint64_t)>& progress);

  OrderedWriter& writer() { return writer_; }
  uint64_t num_bytes_read() const { return num_bytes_read_; }
  uint64_t peak_bytes() const;
  const PhaseTimes& times() const { return times_; }

 private:
  /// A unit with its buffer.
  struct Order {
    const PlannedTask* task = nullptr;
    uint64_t number = 0;  ///< in the plan
    uint64_t number_in_task = 0;
    Unit unit;
    ByteBuffer buffer;
  };

  struct Worker {
    explicit Worker(ReaderContext& context) : reader(context) {}

    UnitReader reader;
    ZstdEncoder encoder;
    PhaseTimes times;
  };

  void Work();
  Status DoUnits(Worker& worker, uint64_t& number);
  std::optional<Order> Next();
  Result<bool> DoUnit(Worker& worker, Order order);
  void Fail(uint64_t number, Error error);
  void Watch(const std::function<bool(uint64_t)>& progress);

  const RewritePlan& plan_;
  ReaderContext context_;
  MemoryPool pool_;
  OrderedWriter writer_;

  /// Held while waiting for memory, so that units get it in order.
  std::mutex order_mutex_;
  size_t next_task_ = 0;
  uint64_t next_unit_ = 0;
  uint64_t next_unit_of_task_ = 0;
  std::optional<UnitGrid::Cursor> cursor_;

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  int num_running_ = 0;
  std::optional<Error> error_;
  uint64_t error_number_ = 0;
  uint64_t num_bytes_read_ = 0;
  PhaseTimes times_;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_WORKERS_H_
