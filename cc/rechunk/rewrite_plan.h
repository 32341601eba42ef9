#ifndef RELAYOUT_CC_RECHUNK_REWRITE_PLAN_H_
#define RELAYOUT_CC_RECHUNK_REWRITE_PLAN_H_

/// \file
/// Plans how tasks are done within a limit of memory.  A plan reads no file.
///
/// The limit is shared out: a fixed part for each worker (its context of zstd
/// and the pieces that it decodes), the streams of large source chunks, and the
/// buffers of units.  How tasks are cut into units depends on the limit alone,
/// so the number of workers does not show in the output.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/base/result.h"
#include "cc/rechunk/chains.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/memory_shares.h"
#include "cc/rechunk/task.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {

struct PlannedTask {
  CheckedTask task;
  UnitGrid grid;
  Chains chains;
};

struct RewritePlan {
  std::vector<PlannedTask> tasks;
  MemoryShares memory;
  uint64_t num_units = 0;
  uint64_t num_source_bytes = 0;  ///< of the arrays, decoded
  uint64_t num_stored_bytes = 0;  ///< of their chunks
  uint64_t num_target_bytes = 0;  ///< of the arrays, decoded
  /// Bytes that are to be decoded of the chunks that are larger than a piece;
  /// more than they hold if units need them several times.
  uint64_t num_streamed_bytes = 0;
  uint64_t expected_memory_bytes = 0;
};

/// Plans `tasks`; `num_threads` 0 means one per processor.
///
/// Errors: those of `CheckTask`; `kInvalidArgument` naming the array when a
/// target chunk does not fit the limit, a name of a target occurs twice, or
/// there are too many chunks; `kCorrupt` when a source stores a chunk outside
/// its grid.
Result<RewritePlan> PlanRewrite(std::vector<RewriteTask> tasks,
                                uint64_t memory_limit, int num_threads);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_REWRITE_PLAN_H_
