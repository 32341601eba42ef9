#include "cc/rechunk/rewrite_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/rechunk/chains.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/memory_shares.h"
#include "cc/rechunk/stored_size.h"
#include "cc/rechunk/task.h"
#include "cc/rechunk/unit_buffer.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {
namespace {

/// More chunks would not even fit a database.
constexpr uint64_t kMaxChunks = uint64_t{1} << 28;

Result<std::vector<CheckedTask>> CheckTasks(std::vector<RewriteTask> tasks) {
  std::vector<CheckedTask> checked;
  checked.reserve(tasks.size());
  for (RewriteTask& task : tasks) {
    RELAYOUT_ASSIGN_OR_RETURN(CheckedTask result, CheckTask(std::move(task)));
    checked.push_back(std::move(result));
  }
  return checked;
}

Status CheckNames(std::span<const CheckedTask> tasks) {
  std::unordered_set<std::string_view> names;
  for (const CheckedTask& task : tasks) {
    for (const TargetArray& target : task.task.targets) {
      if (!names.insert(target.array).second) {
        return InvalidArgument(StrCat("array ", Quote(target.array),
                                      " is the target of two tasks"));
      }
    }
  }
  return {};
}

Status CheckNumChunks(std::span<const CheckedTask> tasks) {
  uint64_t num_chunks = 0;
  for (const CheckedTask& task : tasks) {
    uint64_t product = task.num_elements == 0 ? 0 : 1;
    for (uint32_t axis = 0; axis < task.rank; ++axis) {
      product *= task.target.placement.counts[axis];
    }
    num_chunks += product;
    if (num_chunks <= kMaxChunks) continue;
    return InvalidArgument(
        StrCat("array ", Quote(task.task.targets.front().array),
               " brings the chunks to write to more than ", kMaxChunks));
  }
  return {};
}

Status AddSources(const CheckedTask& task, RewritePlan& plan) {
  for (size_t i = 0; i < task.sources.size(); ++i) {
    const SourceArray& source = task.task.sources[i];
    auto num_bytes = NumStoredBytes(source);
    if (!num_bytes.has_value()) {
      return InContext(std::move(num_bytes).error(),
                       StrCat("array ", Quote(source.array)));
    }
    plan.num_stored_bytes += *num_bytes;
    plan.num_source_bytes += task.num_elements / task.sources.size() *
                             task.sources[i].num_element_bytes;
  }
  return {};
}

struct Cut {
  UnitGrid grid;
  Chains chains;
};

Cut CutTask(const CheckedTask& task, const MemoryShares& memory,
            uint64_t first_chain) {
  UnitGrid grid(task, MaxUnitChunks(task, memory, /*is_pass=*/false));
  Chains chains(task, grid, memory.piece, first_chain);
  if (!chains.has_passes()) return {std::move(grid), std::move(chains)};
  // The target chunks of one unit lie all over a source chunk; the more there
  // are, the fewer times it is decoded.
  UnitGrid larger(task, MaxUnitChunks(task, memory, /*is_pass=*/true));
  Chains fewer(task, larger, memory.piece, first_chain);
  return {std::move(larger), std::move(fewer)};
}

/// Returns the bytes of the buffer of the largest unit.
uint64_t AddTask(CheckedTask task, uint64_t& num_chains, RewritePlan& plan) {
  if (task.num_elements == 0) {
    UnitGrid grid(task, 1);
    plan.tasks.push_back({std::move(task), grid, Chains()});
    return 0;
  }
  Cut cut = CutTask(task, plan.memory, num_chains);
  num_chains += cut.chains.num_chains();
  plan.num_units += cut.grid.num_units();
  plan.num_target_bytes += task.num_elements * task.target.num_element_bytes;
  plan.num_streamed_bytes += cut.chains.num_streamed_bytes();
  const uint64_t num_unit_bytes =
      NumUnitBytes(task, cut.grid.max_unit_chunks());
  plan.tasks.push_back(
      {std::move(task), std::move(cut.grid), std::move(cut.chains)});
  return num_unit_bytes;
}

uint64_t ExpectedMemory(const RewritePlan& plan, uint64_t num_unit_bytes) {
  const MemoryShares& memory = plan.memory;
  const auto num_workers = static_cast<uint64_t>(memory.num_workers);
  const uint64_t num_units = std::min(plan.num_units, 2 * num_workers);
  return num_workers * memory.worker + memory.streams +
         std::min(memory.units, num_units * num_unit_bytes);
}

}  // namespace

Result<RewritePlan> PlanRewrite(std::vector<RewriteTask> tasks,
                                uint64_t memory_limit, int num_threads) {
  RELAYOUT_ASSIGN_OR_RETURN(std::vector<CheckedTask> checked,
                            CheckTasks(std::move(tasks)));
  RELAYOUT_RETURN_IF_ERROR(CheckNames(checked));
  RELAYOUT_RETURN_IF_ERROR(CheckNumChunks(checked));
  RewritePlan plan;
  RELAYOUT_ASSIGN_OR_RETURN(plan.memory, ShareMemory(checked, memory_limit));
  uint64_t num_chains = 0;
  uint64_t num_unit_bytes = 0;
  plan.tasks.reserve(checked.size());
  for (CheckedTask& task : checked) {
    RELAYOUT_RETURN_IF_ERROR(AddSources(task, plan));
    num_unit_bytes =
        std::max(num_unit_bytes, AddTask(std::move(task), num_chains, plan));
  }
  ExtendShares(num_threads, num_unit_bytes, plan.memory);
  plan.expected_memory_bytes = ExpectedMemory(plan, num_unit_bytes);
  return plan;
}

}  // namespace relayout::rechunk
