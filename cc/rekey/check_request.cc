#include "cc/rekey/check_request.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"

namespace relayout::rekey {
namespace {

std::string Describe(const ArrayMove& move) {
  return StrCat("move of array ", Quote(move.source_array), " to ",
                Quote(move.target_array));
}

Status CheckListing(uint32_t listing, size_t num_listings) {
  if (listing < num_listings) return {};
  return InvalidArgument(StrCat("listing ", listing, " is not one of the ",
                                num_listings, " given"));
}

Status CheckAxis(uint64_t axis, size_t rank) {
  if (axis < rank) return {};
  return InvalidArgument(
      StrCat("axis ", axis, " is beyond the source rank ", rank));
}

Status CheckSeparator(zarr::ChunkKeyFormat format) {
  if (format.separator == '.' || format.separator == '/') return {};
  return InvalidArgument("separator of chunk keys is neither '.' nor '/'");
}

/// Checks the filters, which are sorted by axis.
Status CheckFilters(const ArrayMove& move) {
  const size_t rank = move.source_grid.size();
  for (size_t i = 0; i < move.filters.size(); ++i) {
    const auto [axis, index] = move.filters[i];
    RELAYOUT_RETURN_IF_ERROR(CheckAxis(axis, rank));
    if (i > 0 && move.filters[i - 1].axis == axis) {
      return InvalidArgument(StrCat("axis ", axis, " has two filters"));
    }
    if (index >= move.source_grid[axis]) {
      return InvalidArgument(StrCat("filter index ", index, " on axis ", axis,
                                    " is beyond its ", move.source_grid[axis],
                                    " chunks"));
    }
  }
  return {};
}

/// Checks that the target index tells every two source chunks apart.
Status CheckTargetIndex(const ArrayMove& move) {
  const size_t rank = move.source_grid.size();
  std::vector<int> num_uses(rank);
  for (const AxisTerm& term : move.target_index) {
    if (term.is_constant) continue;
    RELAYOUT_RETURN_IF_ERROR(CheckAxis(term.value, rank));
    ++num_uses[term.value];
  }
  // A pinned axis has one index, so it need not occur.
  for (const AxisFilter& filter : move.filters) num_uses[filter.axis] = 1;
  const auto wrong =
      std::ranges::find_if(num_uses, [](int n) { return n != 1; });
  if (wrong == num_uses.end()) return {};
  return InvalidArgument(StrCat("source axis ", wrong - num_uses.begin(),
                                " occurs ", *wrong,
                                " times in the target index, not once"));
}

Status CheckMove(const ArrayMove& move, size_t num_listings) {
  RELAYOUT_RETURN_IF_ERROR(CheckListing(move.listing, num_listings));
  RELAYOUT_RETURN_IF_ERROR(CheckSeparator(move.source_keys));
  RELAYOUT_RETURN_IF_ERROR(CheckSeparator(move.target_keys));
  RELAYOUT_RETURN_IF_ERROR(CheckFilters(move));
  return CheckTargetIndex(move);
}

/// Checks that the literals hold metadata for each array with moved chunks.
Status CheckMetadata(const Request& request) {
  std::unordered_set<std::string_view> keys;
  for (const Literal& literal : request.literals) keys.insert(literal.key);
  for (const ArrayMove& move : request.moves) {
    if (keys.contains(move.target_array + "/.zarray")) continue;
    if (keys.contains(move.target_array + "/zarr.json")) continue;
    return InvalidArgument(
        StrCat(Describe(move), ": no literal holds the target's metadata"));
  }
  return {};
}

}  // namespace

Status NormalizeRequest(Request& request, size_t num_listings) {
  for (ArrayMove& move : request.moves) {
    std::ranges::sort(move.filters, {}, &AxisFilter::axis);
    if (auto status = CheckMove(move, num_listings); !status.has_value()) {
      return InContext(std::move(status).error(), Describe(move));
    }
  }
  for (const ArrayDrop& drop : request.drops) {
    RELAYOUT_RETURN_IF_ERROR(CheckListing(drop.listing, num_listings));
  }
  return CheckMetadata(request);
}

}  // namespace relayout::rekey
