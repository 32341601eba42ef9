#ifndef RELAYOUT_CC_RECHUNK_CHECKED_TASK_H_
#define RELAYOUT_CC_RECHUNK_CHECKED_TASK_H_

/// \file
/// A task whose arrays fit its common space, with what follows from it.

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/element.h"
#include "cc/rechunk/element_copy.h"
#include "cc/rechunk/placement.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

/// What is known of one source array besides its description.
struct SourceForm {
  Placement placement;
  uint64_t num_element_bytes = 0;
  uint64_t num_chunk_bytes = 0;  ///< decoded
  CopyElements copy = nullptr;
  /// One element of the target with the value of the chunks that are absent.
  std::string fill;
  /// Whether it is that of the target, so that absent chunks may stay absent.
  bool keeps_fill = false;
};

struct TargetForm {
  Placement placement;
  uint64_t num_element_bytes = 0;
  uint64_t num_chunk_bytes = 0;
  /// Copies elements of the target.
  CopyElements copy = nullptr;
};

struct CheckedTask {
  RewriteTask task;
  uint32_t rank = 0;
  Coords shape{};
  std::vector<SourceForm> sources;
  TargetForm target;  ///< of each target array
  bool is_source_stacked = false;
  bool is_target_stacked = false;
  uint64_t num_elements = 0;

  /// Returns the number of the source or target array that has `position`.
  uint64_t SourceAt(const Coords& position) const {
    return is_source_stacked ? 0 : LayerAt(position);
  }
  uint64_t TargetAt(const Coords& position) const {
    return is_target_stacked ? 0 : LayerAt(position);
  }

  Box WholeBox() const { return {.begin = {}, .end = shape}; }

 private:
  uint64_t LayerAt(const Coords& position) const;
};

/// Checks `task`.
///
/// Errors: `kInvalidArgument` naming the array when shapes, axes, fill values
/// or dtypes do not fit; `kUnsupported` for a dtype that is not known.
Result<CheckedTask> CheckTask(RewriteTask task);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_CHECKED_TASK_H_
