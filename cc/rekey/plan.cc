#include "cc/rekey/plan.h"

#include <span>
#include <utility>

#include "cc/base/parallel.h"
#include "cc/rekey/array_index.h"
#include "cc/rekey/check_request.h"
#include "cc/rekey/draft.h"
#include "cc/rekey/expand.h"
#include "cc/rekey/sort_drafts.h"
#include "cc/rekey/source_array.h"

namespace relayout::rekey {
namespace {

using Listings = std::span<const std::shared_ptr<const ocdbt::Listing>>;

Result<std::vector<ArrayIndex>> IndexAll(Listings listings, int num_threads) {
  std::vector<ArrayIndex> indices(listings.size());
  RELAYOUT_RETURN_IF_ERROR(
      ParallelFor(listings.size(), num_threads, [&](size_t i) -> Status {
        RELAYOUT_ASSIGN_OR_RETURN(indices[i], IndexArrays(*listings[i]));
        return {};
      }));
  return indices;
}

Result<std::vector<ExpandedSlice>> ExpandAll(
    std::span<const SourceArray> sources, std::span<const ArrayMove> moves,
    int num_threads) {
  const std::vector<SourceSlice> slices = CutIntoSlices(sources);
  std::vector<ExpandedSlice> expanded(slices.size());
  RELAYOUT_RETURN_IF_ERROR(
      ParallelFor(slices.size(), num_threads, [&](size_t i) -> Status {
        RELAYOUT_ASSIGN_OR_RETURN(expanded[i], Expand(slices[i], moves));
        return {};
      }));
  return expanded;
}

std::vector<ocdbt::Entry> LiteralEntries(std::span<const Literal> literals) {
  std::vector<ocdbt::Entry> entries;
  entries.reserve(literals.size());
  for (const Literal& literal : literals) {
    ocdbt::Entry& entry = entries.emplace_back();
    entry.key = literal.key;
    entry.value.length = literal.value.size();
    entry.value.inline_data = literal.value.data();
  }
  return entries;
}

std::vector<Draft> LiteralDrafts(std::span<const ocdbt::Entry> entries) {
  std::vector<Draft> drafts;
  drafts.reserve(entries.size());
  for (const ocdbt::Entry& entry : entries) {
    drafts.push_back({.key = entry.key, .source = &entry});
  }
  return drafts;
}

Result<std::vector<Draft>> SortAll(std::span<const ExpandedSlice> expanded,
                                   std::span<const Draft> literals,
                                   std::span<const ArrayMove> moves,
                                   int num_threads) {
  std::vector<std::span<const Draft>> parts;
  for (const ExpandedSlice& slice : expanded) parts.push_back(slice.drafts);
  parts.push_back(literals);
  return SortDrafts(parts, moves, num_threads);
}

/// Turns sorted drafts into the entries and the file table of a plan.
class Finisher {
 public:
  Finisher(Listings listings, std::span<const ArrayMove> moves)
      : listings_(listings), moves_(moves) {
    for (const auto& listing : listings) {
      planned_files_.emplace_back(listing->files.size(), kNotPlanned);
    }
  }

  RekeyPlan Finish(std::span<const Draft> drafts) && {
    plan_.entries.reserve(drafts.size());
    for (const Draft& draft : drafts) {
      plan_.entries.push_back({draft.key, TargetValue(draft)});
    }
    return std::move(plan_);
  }

 private:
  static constexpr uint32_t kNotPlanned = UINT32_MAX;

  ocdbt::Value TargetValue(const Draft& draft) {
    ocdbt::Value value = draft.source->value;
    if (value.is_inline()) {
      plan_.num_inline_bytes += value.length;
    } else {
      value.file = PlannedIndex(moves_[draft.move].listing, value.file);
      plan_.num_indirect_bytes += value.length;
    }
    return value;
  }

  uint32_t PlannedIndex(uint32_t listing, uint32_t file) {
    uint32_t& planned = planned_files_[listing][file];
    if (planned == kNotPlanned) {
      planned = plan_.files.size();
      plan_.files.push_back({listing, listings_[listing]->files[file],
                             listings_[listing]->file_sizes[file]});
    }
    return planned;
  }

  const Listings listings_;
  const std::span<const ArrayMove> moves_;
  /// Index into `RekeyPlan::files` of each file of each listing.
  std::vector<std::vector<uint32_t>> planned_files_;
  RekeyPlan plan_;
};

/// Makes `plan` own what its keys and values are views into.
void AddOwners(
    const std::vector<std::shared_ptr<const ocdbt::Listing>>& listings,
    std::shared_ptr<const Request> request, std::vector<ExpandedSlice> expanded,
    RekeyPlan& plan) {
  plan.owners.assign(listings.begin(), listings.end());
  plan.owners.push_back(std::move(request));
  for (ExpandedSlice& slice : expanded) {
    plan.owners.push_back(
        std::make_shared<const KeyArena>(std::move(slice.keys)));
  }
}

}  // namespace

Result<RekeyPlan> Plan(
    const std::vector<std::shared_ptr<const ocdbt::Listing>>& listings,
    Request request, int num_threads) {
  RELAYOUT_RETURN_IF_ERROR(NormalizeRequest(request, listings.size()));
  const auto owned = std::make_shared<const Request>(std::move(request));
  RELAYOUT_ASSIGN_OR_RETURN(const auto indices,
                            IndexAll(listings, num_threads));
  RELAYOUT_ASSIGN_OR_RETURN(const auto sources,
                            FindSourceArrays(listings, indices, *owned));
  RELAYOUT_ASSIGN_OR_RETURN(auto expanded,
                            ExpandAll(sources, owned->moves, num_threads));
  const auto literals = LiteralEntries(owned->literals);
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto drafts,
      SortAll(expanded, LiteralDrafts(literals), owned->moves, num_threads));
  RekeyPlan plan = Finisher(listings, owned->moves).Finish(drafts);
  AddOwners(listings, owned, std::move(expanded), plan);
  return plan;
}

}  // namespace relayout::rekey
