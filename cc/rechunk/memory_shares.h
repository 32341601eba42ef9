#ifndef RELAYOUT_CC_RECHUNK_MEMORY_SHARES_H_
#define RELAYOUT_CC_RECHUNK_MEMORY_SHARES_H_

/// \file
/// How a limit of memory is shared out.

#include <cstdint>
#include <span>

#include "cc/base/result.h"
#include "cc/rechunk/checked_task.h"

namespace relayout::rechunk {

/// Bytes.
struct MemoryShares {
  uint64_t limit = 0;
  /// Decoded bytes of a large chunk at a time; chunks up to this length are
  /// decoded in one go.
  uint64_t piece = 0;
  uint64_t worker = 0;   ///< of each worker, besides what follows
  uint64_t streams = 0;  ///< of all
  uint64_t units = 0;    ///< of all
  int num_workers = 1;
};

/// Returns the shares of one worker, with the smallest one for streams that
/// does for the usual windows of zstd.
///
/// Errors: `kInvalidArgument` naming the first target array, what its chunks
/// take at least, and the limit, when they do not fit.
Result<MemoryShares> ShareMemory(std::span<const CheckedTask> tasks,
                                 uint64_t limit);

/// Returns the most target chunks of `task` that a unit may have; more if each
/// unit costs a `pass` over a large source chunk.
uint64_t MaxUnitChunks(const CheckedTask& task, const MemoryShares& shares,
                       bool is_pass);

/// Adds workers, up to `num_threads`, and gives the streams more, as far as the
/// limit allows with units of `num_unit_bytes`.
void ExtendShares(int num_threads, uint64_t num_unit_bytes,
                  MemoryShares& shares);

/// Returns whether chunks of a source are decoded as streams.
bool IsStreamed(const CheckedTask& task, uint64_t source,
                uint64_t num_piece_bytes);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_MEMORY_SHARES_H_
