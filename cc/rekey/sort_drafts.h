#ifndef RELAYOUT_CC_REKEY_SORT_DRAFTS_H_
#define RELAYOUT_CC_REKEY_SORT_DRAFTS_H_

#include <span>
#include <vector>

#include "cc/base/result.h"
#include "cc/rekey/draft.h"
#include "cc/rekey/plan.h"

namespace relayout::rekey {

/// Returns the drafts of all `parts` in order of their keys; target arrays are
/// sorted in parallel.
///
/// Errors: `kInvalidArgument` when two drafts have one key, naming both
/// sources.
Result<std::vector<Draft>> SortDrafts(
    std::span<const std::span<const Draft>> parts,
    std::span<const ArrayMove> moves, int num_threads);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_SORT_DRAFTS_H_
