#include "cc/rekey/target_order.h"

#include <algorithm>
#include <utility>

namespace relayout::rekey {
namespace {

/// Returns the sorted starts of the groups; each but the first, which is
/// empty, begins with no other.
std::vector<std::string> OutermostStarts(std::span<const ArrayMove> moves) {
  std::vector<std::string> all;
  for (const ArrayMove& move : moves) all.push_back(move.target_array + '/');
  std::ranges::sort(all);
  std::vector<std::string> starts(1);
  for (std::string& start : all) {
    const bool is_inside =
        starts.size() > 1 && start.starts_with(starts.back());
    if (!is_inside) starts.push_back(std::move(start));
  }
  return starts;
}

}  // namespace

TargetOrder::TargetOrder(std::span<const ArrayMove> moves)
    : starts_(OutermostStarts(moves)) {
  for (const ArrayMove& move : moves) {
    group_of_move_.push_back(GroupOfKey(move.target_array + '/'));
  }
}

size_t TargetOrder::GroupOfKey(std::string_view key) const {
  const auto after = std::ranges::upper_bound(starts_, key, std::less<>());
  return after - starts_.begin() - 1;
}

}  // namespace relayout::rekey
