#ifndef RELAYOUT_CC_REKEY_SORT_ENTRIES_H_
#define RELAYOUT_CC_REKEY_SORT_ENTRIES_H_

#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/entry.h"

namespace relayout::rekey {

/// Sorts `entries` by key, on `num_threads` threads (0: one per processor).
///
/// Errors: `kCorrupt` naming a key that occurs twice.
Status SortEntries(std::vector<ocdbt::Entry>& entries, int num_threads);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_SORT_ENTRIES_H_
