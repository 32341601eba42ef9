#ifndef RELAYOUT_CC_REKEY_TARGET_ORDER_H_
#define RELAYOUT_CC_REKEY_TARGET_ORDER_H_

/// \file
/// Groups of target keys that can be sorted apart from each other.
///
/// The keys of a target array are one range of all target keys, so the arrays
/// are put in order first and their chunks sorted within each.  An array inside
/// another (`a/b` in `a`) shares the group of the outer one.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/rekey/plan.h"

namespace relayout::rekey {

/// Every key of a group sorts before every key of the next.
class TargetOrder {
 public:
  explicit TargetOrder(std::span<const ArrayMove> moves);

  size_t num_groups() const { return starts_.size(); }

  /// Returns the group of the keys of a move.
  size_t GroupOfMove(size_t move) const { return group_of_move_[move]; }

  /// Returns the group of any other key.
  size_t GroupOfKey(std::string_view key) const;

 private:
  /// A group holds the keys from its start to before the next one's.  The first
  /// start is empty, the others are `<target array>/` in order.
  std::vector<std::string> starts_;
  std::vector<size_t> group_of_move_;
};

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_TARGET_ORDER_H_
