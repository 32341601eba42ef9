#ifndef RELAYOUT_CC_BASE_PARALLEL_H_
#define RELAYOUT_CC_BASE_PARALLEL_H_

/// \file
/// A bounded parallel loop.

#include <cstddef>
#include <functional>

#include "cc/base/result.h"

namespace relayout {

/// Calls `body(i)` for each `0 <= i < num_items`, on up to `num_threads`
/// threads of which the caller's is one; 0 means one per processor.  Items are
/// begun in order.
///
/// Returns the error of the lowest index that has one, whatever the number of
/// threads; later items may then not run.
Status ParallelFor(size_t num_items, int num_threads,
                   const std::function<Status(size_t)>& body);

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_PARALLEL_H_
