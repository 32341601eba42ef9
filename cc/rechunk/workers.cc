#include "cc/rechunk/workers.h"

#include <chrono>
#include <cstdint>
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
#include "cc/base/str_cat.h"
#include "cc/io/file_writer.h"
#include "cc/rechunk/ordered_writer.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/unit_buffer.h"
#include "cc/rechunk/unit_encoder.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(100);

std::unexpected<Error> EndedByCaller() {
  return SystemError("the rewrite was ended by its caller");
}

}  // namespace

Workers::Workers(const RewritePlan& plan, io::FileWriter& file)
    : plan_(plan),
      context_{.memory = plan.memory,
               .files = {},
               .streams = StreamPool(plan.memory.streams)},
      pool_(plan.memory.units),
      writer_(file, pool_) {}

Status Workers::Run(const std::function<bool(uint64_t)>& progress) {
  std::vector<std::jthread> threads;
  num_running_ = plan_.memory.num_workers;
  for (int i = 0; i < plan_.memory.num_workers; ++i) {
    try {
      threads.emplace_back([this] { Work(); });
    } catch (const std::system_error& error) {
      // Those that there are do all the work.
      const std::lock_guard lock(mutex_);
      num_running_ -= plan_.memory.num_workers - i;
      if (i == 0) {
        return SystemError(StrCat("can't start a thread: ", error.what()));
      }
      break;
    }
  }
  Watch(progress);
  threads.clear();
  if (error_.has_value()) return std::unexpected(*std::move(error_));
  RELAYOUT_RETURN_IF_ERROR(writer_.Flush());
  if (progress == nullptr || progress(writer_.num_decoded_bytes())) return {};
  return EndedByCaller();
}

uint64_t Workers::peak_bytes() const {
  return pool_.peak_bytes() + context_.streams.peak_bytes() +
         static_cast<uint64_t>(plan_.memory.num_workers) * plan_.memory.worker;
}

void Workers::Watch(const std::function<bool(uint64_t)>& progress) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kProgressInterval,
                          [&] { return num_running_ == 0; })) {
    if (progress == nullptr) continue;
    lock.unlock();
    if (!progress(writer_.num_decoded_bytes())) {
      Fail(0, EndedByCaller().error());
      return;
    }
    lock.lock();
  }
}

void Workers::Work() {
  uint64_t number = 0;
  Status status;
  try {
    Worker worker(context_);
    status = DoUnits(worker, number);
    const std::lock_guard lock(mutex_);
    num_bytes_read_ += worker.reader.num_bytes_read();
    times_.Add(worker.times);
  } catch (const std::bad_alloc&) {
    status = SystemError("out of memory");
  }
  if (!status.has_value()) Fail(number, std::move(status).error());
  const std::lock_guard lock(mutex_);
  if (--num_running_ == 0) ended_.notify_all();
}

Status Workers::DoUnits(Worker& worker, uint64_t& number) {
  while (true) {
    std::optional<Order> order;
    {
      const PhaseTimer timer(Phase::kWait, worker.times);
      order = Next();
    }
    if (!order.has_value()) return {};
    number = order->number;
    RELAYOUT_ASSIGN_OR_RETURN(const bool is_done,
                              DoUnit(worker, *std::move(order)));
    if (!is_done) return {};
  }
}

std::optional<Workers::Order> Workers::Next() {
  const std::lock_guard lock(order_mutex_);
  while (!cursor_.has_value() || cursor_->at_end()) {
    if (next_task_ == plan_.tasks.size()) return std::nullopt;
    cursor_.emplace(plan_.tasks[next_task_++].grid);
    next_unit_of_task_ = 0;
  }
  Order order = {.task = &plan_.tasks[next_task_ - 1],
                 .number = next_unit_++,
                 .number_in_task = next_unit_of_task_++,
                 .unit = cursor_->Get(),
                 .buffer = {}};
  cursor_->Advance();
  auto buffer =
      pool_.Acquire(NumUnitBytes(order.task->task, order.unit.num_chunks));
  if (!buffer.has_value()) return std::nullopt;
  order.buffer = *std::move(buffer);
  return order;
}

Result<bool> Workers::DoUnit(Worker& worker, Order order) {
  const CheckedTask& task = order.task->task;
  UnitBuffer buffer(task, order.unit, std::move(order.buffer));
  RELAYOUT_ASSIGN_OR_RETURN(
      const bool is_filled,
      worker.reader.Fill(*order.task, order.number_in_task, buffer,
                         worker.times));
  if (!is_filled) return false;
  EncodedUnit encoded;
  {
    const PhaseTimer timer(Phase::kEncode, worker.times);
    RELAYOUT_ASSIGN_OR_RETURN(
        encoded, EncodeUnit(task, std::move(buffer), worker.encoder));
  }
  const PhaseTimer timer(Phase::kWrite, worker.times);
  RELAYOUT_RETURN_IF_ERROR(writer_.Write(order.number, std::move(encoded)));
  return true;
}

void Workers::Fail(uint64_t number, Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_.has_value() || number < error_number_) {
      error_ = std::move(error);
      error_number_ = number;
    }
  }
  pool_.Stop();
  context_.streams.Stop();
}

}  // namespace relayout::rechunk
