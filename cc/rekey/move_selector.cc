#include "cc/rekey/move_selector.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

namespace relayout::rekey {
namespace {

std::vector<uint32_t> PinnedAxes(const ArrayMove& move) {
  std::vector<uint32_t> axes;
  for (const AxisFilter& filter : move.filters) axes.push_back(filter.axis);
  return axes;
}

/// Compares the indices that `move` pins with those of a chunk.
std::strong_ordering ComparePinned(const ArrayMove& move,
                                   std::span<const uint64_t> index) {
  for (const AxisFilter& filter : move.filters) {
    const auto order = filter.index <=> index[filter.axis];
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

/// Orders moves that pin the same axes.
bool PinsLess(const ArrayMove& a, const ArrayMove& b) {
  return std::ranges::lexicographical_compare(
      a.filters, b.filters, {}, &AxisFilter::index, &AxisFilter::index);
}

}  // namespace

MoveSelector::MoveSelector(std::span<const ArrayMove> moves,
                           std::span<const uint32_t> members)
    : moves_(moves) {
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> by_axes;
  for (const uint32_t member : members) {
    by_axes[PinnedAxes(moves[member])].push_back(member);
  }
  for (auto& [axes, family] : by_axes) {
    std::ranges::stable_sort(family, [&](uint32_t a, uint32_t b) {
      return PinsLess(moves[a], moves[b]);
    });
    families_.push_back(std::move(family));
  }
}

void MoveSelector::Select(std::span<const uint64_t> index,
                          std::vector<uint32_t>& selected) const {
  selected.clear();
  for (const std::vector<uint32_t>& family : families_) {
    auto move = std::ranges::partition_point(family, [&](uint32_t member) {
      return ComparePinned(moves_[member], index) < 0;
    });
    for (; move != family.end(); ++move) {
      if (ComparePinned(moves_[*move], index) != 0) break;
      selected.push_back(*move);
    }
  }
}

}  // namespace relayout::rekey
