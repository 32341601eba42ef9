#ifndef RELAYOUT_CC_REKEY_MOVE_SELECTOR_H_
#define RELAYOUT_CC_REKEY_MOVE_SELECTOR_H_

/// \file
/// Which moves of one source array take a chunk.
///
/// Unstacking gives an array as many moves as it has layers, or even chunks, so
/// they are found by binary search rather than tried one by one.

#include <cstdint>
#include <span>
#include <vector>

#include "cc/rekey/plan.h"

namespace relayout::rekey {

class MoveSelector {
 public:
  /// `members` index `moves` and share a source array.  Filters must be sorted
  /// by axis.  Refers to `moves` from then on.
  MoveSelector(std::span<const ArrayMove> moves,
               std::span<const uint32_t> members);

  /// Puts the moves that take the chunk at `index` into `selected`.
  void Select(std::span<const uint64_t> index,
              std::vector<uint32_t>& selected) const;

 private:
  std::span<const ArrayMove> moves_;
  /// Moves whose filters pin the same axes, sorted by the indices they pin.
  std::vector<std::vector<uint32_t>> families_;
};

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_MOVE_SELECTOR_H_
