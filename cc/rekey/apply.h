#ifndef RELAYOUT_CC_REKEY_APPLY_H_
#define RELAYOUT_CC_REKEY_APPLY_H_

/// \file
/// Writes the B+tree nodes and the manifest of a plan.  Values are not
/// touched: the data files must already be linked into the target.

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/rekey/plan.h"

namespace relayout::rekey {

struct ApplyOptions {
  /// Existing directory to write `manifest.ocdbt`, which must not exist, and
  /// the data file into.
  std::string directory;
  /// Of the new database: uuid, limits, compression.
  ocdbt::Config config;
  /// For each of `RekeyPlan::files`, its path below `directory`.
  std::vector<std::string> file_paths;
  /// Path below `directory` of the data file that takes the nodes and the
  /// values too long to be inline; must not exist.  An empty database has none.
  std::string data_file = "d/nodes";
  uint64_t commit_time_ns = 0;
  /// Whether the files are made durable, the manifest last; false where the
  /// caller does so for the whole directory.
  bool sync = true;
  /// 0: one per processor.  The bytes written do not depend on it.
  int num_threads = 0;
};

struct ApplyReport {
  uint64_t num_keys = 0;
  uint64_t num_nodes = 0;
  uint32_t height = 0;             ///< of the root node
  uint64_t num_bytes_written = 0;  ///< data file and manifest
};

/// Writes `plan` as the only version, of generation 1; the manifest last.
///
/// Errors: `kInvalidArgument` when a single entry exceeds the node limit, or
/// `file_paths` does not match the plan or names a file that is missing or of
/// another size; `kSystem` when a write fails.
Result<ApplyReport> Apply(const RekeyPlan& plan, const ApplyOptions& options);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_APPLY_H_
