#include "cc/rekey/sort_drafts.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/rekey/target_order.h"

namespace relayout::rekey {
namespace {

std::string DescribeSource(const Draft& draft,
                           std::span<const ArrayMove> moves) {
  if (draft.is_literal()) return "a literal";
  return StrCat("key ", Quote(draft.source->key), " of listing ",
                moves[draft.move].listing);
}

/// Sorts the drafts of one group and checks that their keys differ.
Status SortGroup(std::span<Draft> drafts, std::span<const ArrayMove> moves) {
  if (!std::ranges::is_sorted(drafts, {}, &Draft::key)) {
    std::ranges::sort(drafts, {}, &Draft::key);
  }
  const auto same =
      std::ranges::adjacent_find(drafts, std::ranges::equal_to(), &Draft::key);
  if (same == drafts.end()) return {};
  return InvalidArgument(StrCat(
      "target key ", Quote(same->key), " has two sources: ",
      DescribeSource(same[0], moves), " and ", DescribeSource(same[1], moves)));
}

/// Drafts with those of each group side by side.
struct GroupedDrafts {
  std::vector<Draft> drafts;
  /// Where each group starts; one more at the end.
  std::vector<size_t> starts;

  std::span<Draft> Group(size_t group) {
    return std::span(drafts).subspan(starts[group],
                                     starts[group + 1] - starts[group]);
  }
};

GroupedDrafts GroupDrafts(std::span<const std::span<const Draft>> parts,
                          const TargetOrder& order) {
  const auto group_of = [&](const Draft& draft) {
    return draft.is_literal() ? order.GroupOfKey(draft.key)
                              : order.GroupOfMove(draft.move);
  };
  GroupedDrafts grouped;
  grouped.starts.resize(order.num_groups() + 1);
  for (const auto part : parts) {
    for (const Draft& draft : part) ++grouped.starts[group_of(draft) + 1];
  }
  for (size_t i = 0; i < order.num_groups(); ++i) {
    grouped.starts[i + 1] += grouped.starts[i];
  }
  grouped.drafts.resize(grouped.starts.back());
  std::vector<size_t> next = grouped.starts;
  for (const auto part : parts) {
    for (const Draft& draft : part) {
      grouped.drafts[next[group_of(draft)]++] = draft;
    }
  }
  return grouped;
}

}  // namespace

Result<std::vector<Draft>> SortDrafts(
    std::span<const std::span<const Draft>> parts,
    std::span<const ArrayMove> moves, int num_threads) {
  const TargetOrder order(moves);
  GroupedDrafts grouped = GroupDrafts(parts, order);
  RELAYOUT_RETURN_IF_ERROR(ParallelFor(
      order.num_groups(), num_threads,
      [&](size_t group) { return SortGroup(grouped.Group(group), moves); }));
  return std::move(grouped.drafts);
}

}  // namespace relayout::rekey
