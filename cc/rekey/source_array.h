#ifndef RELAYOUT_CC_REKEY_SOURCE_ARRAY_H_
#define RELAYOUT_CC_REKEY_SOURCE_ARRAY_H_

/// \file
/// The arrays that a request moves, and the keys that it leaves out.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cc/base/result.h"
#include "cc/rekey/array_index.h"
#include "cc/rekey/move_selector.h"
#include "cc/rekey/plan.h"

namespace relayout::rekey {

/// A source array with all its moves.
struct SourceArray {
  const ocdbt::Listing* listing = nullptr;
  const ArrayEntries* array = nullptr;
  /// The move whose key format and grid hold for all of them.
  const ArrayMove* first_move = nullptr;
  MoveSelector selector;
};

/// Finds the source arrays of `request`, in order of listing and name.
/// `indices` holds the arrays of each listing; the result refers to all three.
///
/// Errors: `kInvalidArgument` when a move or drop names nothing, moves of one
/// array disagree about its keys, or a key of a listing is not accounted for.
Result<std::vector<SourceArray>> FindSourceArrays(
    std::span<const std::shared_ptr<const ocdbt::Listing>> listings,
    std::span<const ArrayIndex> indices, const Request& request);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_SOURCE_ARRAY_H_
