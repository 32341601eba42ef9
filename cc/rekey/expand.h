#ifndef RELAYOUT_CC_REKEY_EXPAND_H_
#define RELAYOUT_CC_REKEY_EXPAND_H_

/// \file
/// From the stored chunks of a source array to their target keys.

#include <span>
#include <vector>

#include "cc/base/result.h"
#include "cc/rekey/draft.h"
#include "cc/rekey/key_arena.h"
#include "cc/rekey/source_array.h"

namespace relayout::rekey {

/// A part of a source array, small enough to share the work out.
struct SourceSlice {
  const SourceArray* source = nullptr;
  EntryRange range;
};

/// Cuts `sources` into slices, in order.
std::vector<SourceSlice> CutIntoSlices(std::span<const SourceArray> sources);

/// Where the chunks of a slice go.
struct ExpandedSlice {
  std::vector<Draft> drafts;
  KeyArena keys;  ///< holds the keys of `drafts`
};

/// Applies `moves`, which the source array refers to, to each chunk of `slice`.
///
/// Errors: `kCorrupt` when a chunk key does not parse or lies outside the grid;
/// `kInvalidArgument` when no move takes a chunk.
Result<ExpandedSlice> Expand(const SourceSlice& slice,
                             std::span<const ArrayMove> moves);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_EXPAND_H_
