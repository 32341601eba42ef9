#ifndef RELAYOUT_CC_RECHUNK_REWRITE_H_
#define RELAYOUT_CC_RECHUNK_REWRITE_H_

/// \file
/// Carries out a plan: source chunks are read, decoded, copied into the target
/// chunks, which are encoded and written to one new data file.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/rewrite_plan.h"

namespace relayout::rechunk {

struct RewriteOptions {
  /// Existing directory that `data_file` is below.
  std::string directory;
  /// Path below `directory`; must not exist.  There is none afterwards if no
  /// chunk is stored.
  std::string data_file;
  /// Whether the file is made durable.
  bool sync = true;
  /// Called by the calling thread, a few times a second, with the decoded bytes
  /// of the target arrays that are written; false ends the rewrite.
  std::function<bool(uint64_t num_bytes)> progress;
};

struct RewriteResult {
  /// The target arrays: their metadata, inline, and their chunks.
  std::shared_ptr<const ocdbt::Listing> listing;
  uint64_t num_bytes_read = 0;     ///< of stored source chunks
  uint64_t num_bytes_written = 0;  ///< of the data file
  uint64_t num_chunks_written = 0;
  uint64_t peak_buffer_bytes = 0;
  PhaseTimes times;  ///< summed over threads
};

/// Carries out `plan`.  The bytes written depend on the plan alone.  When it
/// fails, no data file stays.
///
/// Errors: `kCorrupt` naming the array and the chunk for damaged sources;
/// `kInvalidArgument` when the memory does not do for a source, or two target
/// chunks have one key; `kSystem` when a file can't be read or written, or
/// `progress` ended the rewrite.
Result<RewriteResult> Rewrite(const RewritePlan& plan,
                              const RewriteOptions& options);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_REWRITE_H_
